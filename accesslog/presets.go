package accesslog

import "strings"

// presetVariables are the variables of presets that are fields, beside those of nginx.
// Other variables of presets are no field.
var presetVariables = map[string]variable{
	"client_port":      {want: want{name: "client", dash: true}},
	"peer":             {want: want{name: "client", dash: true, form: formPeer}},
	"forwarded_client": {want: want{name: "client", dash: true, form: formForwarded}},
	"request_url":      objectVariable(formURL, 3),
	"request_or_tcp":   {want: want{name: "object", form: formURL, others: "- - - "}, priority: 3},
	"any_time":         timeVariable(unitCommon, 1),
	"size":             numberVariable("size"),
	"user":             fieldVariable("user"),
	"time_millis":      timeVariable(unitCLFMillis, 1),
	"duration":         durationVariable(0),
	"duration_ms":      durationVariable(3),
	"backend":          fieldVariable("backend"),
	"frontend":         fieldVariable("frontend"),
	"router":           fieldVariable("router"),
	"bucket":           fieldVariable("bucket"),
	"operation":        fieldVariable("operation"),
	"termination":      fieldVariable("termination"),
}

// templateFormat returns a named format of lines of a template, which has variables of
// nginx and of presetVariables. must is how a line begins, and more is what most lines,
// or those of later versions, have after it.
func templateFormat(kind *lineKind, name, must, more string) Format {
	s, err := parseVariables(must+more, presetVariables)
	if err != nil {
		panic(err) // a mistake below, which every test finds
	}
	t := s.template
	t.must, t.open = strings.Count(must, "$"), true
	if t.tail == "" {
		t.steps[len(t.steps)-1].after = " "
	}
	return Format{text: name, kind: kind, spec: s.compile()}
}

// The formats that are written as templates.
var (
	traefikText = templateFormat(textLines, "traefik",
		`$forwarded_client - $remote_user [$time_local] "$request" $status $body_bytes_sent "$http_referer" "$http_user_agent" $requests "$router" "$server" ${duration_ms}ms`, "")
	envoyText = templateFormat(textLines, "envoy",
		`[$time_iso8601] "$request" $status $flags $bytes_received $size $duration_ms $upstream_ms "$forwarded_client" "$http_user_agent" "$request_id" "$host" "$upstream"`, "")
	istioText = templateFormat(textLines, "istio",
		`[$time_iso8601] "$request" $status $flags $details $terminated "$failure" $bytes_received $size $duration_ms $upstream_ms "$forwarded_client" "$http_user_agent" "$request_id" "$host" "$upstream"`, "")
	albText = templateFormat(textLines, "alb",
		`$type $time_iso8601 $elb $client_port $target $request_time_in $duration $response_time_out $status $target_status $received $size "$request_url" "$http_user_agent"`,
		` $cipher $tls $target_group "$trace" "$host"`)
	elbText = templateFormat(textLines, "elb",
		`$time_iso8601 $elb $client_port $target $request_time_in $duration $response_time_out $status $target_status $received $size "$request_or_tcp"`,
		` "$http_user_agent" $cipher $tls`)
	s3Text = templateFormat(textLines, "s3",
		`$owner $bucket [$time_local] $client_port $user $request_id $operation $key "$request" $status $error_code $size $object_size $duration_ms $turnaround "$http_referer" "$http_user_agent"`,
		` $version $host_id $signature $cipher $authentication $host`)
	nlbText = templateFormat(textLines, "nlb",
		`tls $version $any_time $elb $listener $client_port $target $duration_ms $handshake $received $size`, "")
	haproxyTCP = templateFormat(haproxyLines, "haproxy-tcp",
		`$peer [$time_millis] $frontend $backend $wait_queue/$connect/$duration_ms $size $termination $connections $queues`, "")
	haproxyText = templateFormat(haproxyLines, "haproxy",
		`$peer [$time_millis] $frontend $backend $wait_client/$wait_queue/$connect/$response/$duration_ms $status $size $request_cookie $response_cookie $termination $connections $queues "$request"`, "")
)

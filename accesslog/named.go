package accesslog

import "slices"

// A NamedFormat describes a format that has a name, for lists.
type NamedFormat struct {
	Name    string   `json:"name"`
	About   string   `json:"about"`
	Example string   `json:"example"` // a line, or several with '\n' between
	Aliases []string `json:"aliases,omitempty"`
	Fields  []string `json:"fields"` // that events can have, see Format.Fields

	format Format
}

// NamedFormats returns the named formats. [ParseFormat] accepts their names and
// aliases, which are GoAccess's names for the same formats.
func NamedFormats() []NamedFormat {
	all := slices.Clone(named)
	for i := range all {
		all[i].Name, all[i].Fields = all[i].format.text, all[i].format.Fields()
	}
	return all
}

// Formats returns the names of the named formats.
func Formats() []string {
	names := make([]string, len(named))
	for i := range named {
		names[i] = named[i].format.text
	}
	return names
}

// formatNamed returns the format of a name or an alias.
func formatNamed(name string) (Format, bool) {
	for i := range named {
		if n := &named[i]; n.format.text == name || slices.Contains(n.Aliases, name) {
			return n.format, true
		}
	}
	return Format{}, false
}

// The named formats of JSON with the fields of requests.
var (
	caddyJSON = namedJSON("caddy", unitAny, []want{
		{name: "time", path: []string{"ts"}},
		{name: "client", path: []string{"request", "client_ip"}},
		{name: "object", path: []string{"request", "uri"}, form: formPath},
		{name: "client", path: []string{"request", "remote_ip"}, fallback: true},
		{name: "client", path: []string{"request", "remote_addr"}, fallback: true}, // before Caddy 2.5
		{name: "method", path: []string{"request", "method"}},
		{name: "protocol", path: []string{"request", "proto"}},
		{name: "host", path: []string{"request", "host"}},
		{name: "referer", path: []string{"request", "headers", "Referer"}, first: true},
		{name: "agent", path: []string{"request", "headers", "User-Agent"}, first: true},
		{name: "x_forwarded_for", path: []string{"request", "headers", "X-Forwarded-For"}, first: true},
		{name: "user", path: []string{"user_id"}},
		{name: "status", path: []string{"status"}},
		{name: "size", path: []string{"size"}},
		{name: "duration", path: []string{"duration"}, form: formDuration},
		{path: []string{"msg"}, only: "handled request"}, // other messages may have a request too
	})
	traefikJSON = namedJSON("traefik-json", unitRFC3339, []want{
		{name: "time", path: []string{"StartUTC"}},
		{name: "client", path: []string{"ClientHost"}, form: formForwarded},
		{name: "object", path: []string{"RequestPath"}, form: formPath},
		{name: "client", path: []string{"ClientAddr"}, fallback: true},
		{name: "method", path: []string{"RequestMethod"}, mark: true},
		{name: "protocol", path: []string{"RequestProtocol"}},
		{name: "host", path: []string{"RequestHost"}},
		{name: "user", path: []string{"ClientUsername"}, dash: true},
		{name: "referer", path: []string{"request_Referer"}},
		{name: "agent", path: []string{"request_User-Agent"}},
		{name: "x_forwarded_for", path: []string{"request_X-Forwarded-For"}},
		{name: "status", path: []string{"DownstreamStatus"}},
		{name: "size", path: []string{"DownstreamContentSize"}},
		{name: "duration", path: []string{"Duration"}, form: formDuration, scale: 9},
		{name: "router", path: []string{"RouterName"}},
	})
	envoyJSON = namedJSON("envoy-json", unitRFC3339, []want{
		{name: "time", path: []string{"start_time"}},
		{name: "client", path: []string{"downstream_remote_address"}, mark: true, dash: true},
		{name: "object", path: []string{"x-envoy-origin-path"}, form: formPath},
		{name: "object", path: []string{"path"}, form: formPath, fallback: true},
		{name: "object", path: []string{":path"}, form: formPath, fallback: true},
		{name: "method", path: []string{"method"}},
		{name: "method", path: []string{":method"}, fallback: true},
		{name: "protocol", path: []string{"protocol"}},
		{name: "host", path: []string{":authority"}, dash: true},
		{name: "host", path: []string{"authority"}, dash: true, fallback: true},
		{name: "agent", path: []string{"user-agent"}, dash: true},
		{name: "agent", path: []string{"user_agent"}, dash: true, fallback: true},
		{name: "x_forwarded_for", path: []string{"x-forwarded-for"}, dash: true},
		{name: "x_forwarded_for", path: []string{"x_forwarded_for"}, dash: true, fallback: true},
		{name: "status", path: []string{"response_code"}, mark: true},
		{name: "size", path: []string{"bytes_sent"}},
		{name: "duration", path: []string{"duration"}, form: formDuration, scale: 3},
	})
)

// Formats without a spec, or with one that lines inside others have.
var (
	w3cFormat    = Format{text: "w3c", kind: w3cLines}
	cloudFront   = cloudFrontFormat()
	dockerJSON   = Format{text: "docker-json", kind: dockerLines, spec: dockerSpec.compile()}
	messages     = Format{text: "messages", kind: messageLines}
	journaldJSON = Format{text: "journald-json", kind: journalLines, spec: journalSpec.compile()}
)

func cloudFrontFormat() Format {
	s := w3cSpec(cloudFrontColumns)
	s.header.more = true
	return Format{text: "cloudfront", kind: cloudFrontLines, spec: s}
}

// clfExample is a line that several formats contain.
const clfExample = `192.0.2.1 - ada [17/Apr/2018:06:25:06 +0000] "GET /cart?item=7 HTTP/1.1" 200 512 "https://shop.example/" "Wren/2.1"`

// named are the named formats, in the order in which lists have them.
var named = []NamedFormat{
	{format: clf, About: "Common and Combined Log Format, as nginx, Apache and many others write it", Example: clfExample, Aliases: []string{"COMMON", "COMBINED"}},
	{format: clfVHost, About: "clf with the virtual host and port in front, as Apache's vhost_combined", Example: "shop.example:443 " + clfExample, Aliases: []string{"VCOMMON", "VCOMBINED"}},
	{format: clfQuoted, About: "clf inside one pair of quotes", Example: `"` + clfExample + `"`},
	{
		format: logfmt, About: "key=value pairs with a time and an address under usual names, as many programs write it",
		Example: `time="2018-04-17T06:25:06.25Z" level=warn msg="login failed" remote_ip=192.0.2.1 user=ada method=GET path=/cart?item=7 status=200`,
	},
	{
		format: commonJSON, About: "JSON with a time and an address under usual names, as many programs write it",
		Example: `{"time":"2018-04-17T06:25:06.25Z","level":"warn","msg":"login failed","remote_ip":"192.0.2.1","user":"ada","method":"GET","path":"/cart?item=7","status":200}`,
	},
	{
		format: caddyJSON, About: "Caddy's access log", Aliases: []string{"CADDY"},
		Example: `{"level":"info","ts":1523946306.25,"logger":"http.log.access","msg":"handled request","request":{"remote_ip":"192.0.2.1","remote_port":"4711","client_ip":"192.0.2.1","proto":"HTTP/2.0","method":"GET","host":"shop.example","uri":"/cart?item=7","headers":{"User-Agent":["Wren/2.1"],"Referer":["https://shop.example/"]}},"bytes_read":0,"user_id":"ada","duration":0.0042,"size":512,"status":200}`,
	},
	{
		format: traefikText, About: "Traefik's access log", Aliases: []string{"TRAEFIKCLF"},
		Example: clfExample + ` 17 "shop@docker" "http://198.51.100.9:80" 42ms`,
	},
	{
		format: traefikJSON, About: "Traefik's access log in JSON",
		Example: `{"ClientAddr":"192.0.2.1:4711","ClientHost":"192.0.2.1","ClientUsername":"ada","DownstreamContentSize":512,"DownstreamStatus":200,"Duration":42000000,"RequestHost":"shop.example","RequestMethod":"GET","RequestPath":"/cart?item=7","RequestProtocol":"HTTP/2.0","RouterName":"shop@docker","StartUTC":"2018-04-17T06:25:06.25Z","request_User-Agent":"Wren/2.1","time":"2018-04-17T06:25:06Z"}`,
	},
	{
		format: envoyText, About: "Envoy's default format; the client is the last address of X-Forwarded-For",
		Example: `[2018-04-17T06:25:06.250Z] "GET /cart?item=7 HTTP/2" 200 - 0 512 42 41 "192.0.2.1" "Wren/2.1" "a1b2c3" "shop.example" "198.51.100.9:80"`,
	},
	{
		format: istioText, About: "Istio's default format of Envoy; the client is the last address of X-Forwarded-For",
		Example: `[2018-04-17T06:25:06.250Z] "GET /cart?item=7 HTTP/2" 200 - via_upstream - "-" 0 512 42 41 "192.0.2.1" "Wren/2.1" "a1b2c3" "shop.example" "198.51.100.9:80" outbound|80||shop.default 198.51.100.1:40000 198.51.100.2:80 192.0.2.1:0 - default`,
	},
	{
		format: envoyJSON, About: "Envoy's JSON format with the names of its and Istio's defaults",
		Example: `{"start_time":"2018-04-17T06:25:06.250Z","method":"GET","path":"/cart?item=7","protocol":"HTTP/2","response_code":200,"bytes_sent":512,"duration":42,"downstream_remote_address":"192.0.2.1:4711","authority":"shop.example","user_agent":"Wren/2.1","x_forwarded_for":"192.0.2.1"}`,
	},
	{
		format: haproxyText, About: "HAProxy's option httplog, in syslog or alone; times are taken as UTC",
		Example: `Apr 17 06:25:06 gate haproxy[812]: 192.0.2.1:4711 [17/Apr/2018:06:25:06.250] web~ shop/app1 0/0/1/41/42 200 512 - - ---- 1/1/0/0/0 0/0 "GET /cart?item=7 HTTP/1.1"`,
	},
	{
		format: haproxyTCP, About: "HAProxy's option tcplog, in syslog or alone",
		Example: `Apr 17 06:25:06 gate haproxy[812]: 192.0.2.1:4711 [17/Apr/2018:06:25:06.250] smtp~ mail/mx1 0/0/42 512 -- 1/1/0/0/0 0/0`,
	},
	{
		format: squid, About: "squid's native access log",
		Example: `1523946306.250     42 192.0.2.1 TCP_MISS/200 512 GET http://shop.example/cart?item=7 ada HIER_DIRECT/198.51.100.9 text/html`,
	},
	{
		format: nlbText, About: "Network Load Balancer of AWS, connections of TLS",
		Example: `tls 2.0 2018-04-17T06:25:06 net/shop/50dc6c495c0c9188 g3d4b5e8bb8464cd 192.0.2.1:4711 198.51.100.9:443 42 2 98 512 - arn:aws:acm:eu-west-1:123456789012:certificate/a1b2 - ECDHE-RSA-AES128-GCM-SHA256 tlsv12 - shop.example - - -`,
	},
	{
		format: albText, About: "Application Load Balancer of AWS", Aliases: []string{"AWSALB"},
		Example: `https 2018-04-17T06:25:06.250000Z app/shop/50dc6c495c0c9188 192.0.2.1:4711 198.51.100.9:80 0.000 0.041 0.001 200 200 34 512 "GET https://shop.example:443/cart?item=7 HTTP/2.0" "Wren/2.1" ECDHE-RSA-AES128-GCM-SHA256 TLSv1.2 arn:aws:elasticloadbalancing:eu-west-1:123456789012:targetgroup/shop/73e2d6bc24d8a067 "Root=1-58337262-36d228ad5d99923122bbe354" "shop.example"`,
	},
	{
		format: elbText, About: "Classic Load Balancer of AWS; connections without a request are skipped", Aliases: []string{"AWSELB"},
		Example: `2018-04-17T06:25:06.250000Z shop 192.0.2.1:4711 198.51.100.9:80 0.000073 0.041 0.000057 200 200 0 512 "GET https://shop.example:443/cart?item=7 HTTP/1.1" "Wren/2.1" ECDHE-RSA-AES128-GCM-SHA256 TLSv1.2`,
	},
	{
		format: s3Text, About: "server access log of AWS S3; the user is the requester", Aliases: []string{"AWSS3"},
		Example: `79a59df900b949e55d96a1e698fbacedfd6e09d98eacf8f8d5218e7cd47ef2be shop-pictures [17/Apr/2018:06:25:06 +0000] 192.0.2.1 ada 3E57427F3EXAMPLE REST.GET.OBJECT cart.png "GET /cart.png?item=7 HTTP/1.1" 200 - 512 512 42 41 "https://shop.example/" "Wren/2.1" - 9vKBE6vMhrNiWHZmb2L0mXOcqPGzQOI5XLnCtZNPxev6Hf SigV4 ECDHE-RSA-AES128-GCM-SHA256 AuthHeader shop-pictures.s3.eu-west-1.amazonaws.com TLSv1.2`,
	},
	{
		format: cloudFront, About: "standard log of AWS CloudFront", Aliases: []string{"CLOUDFRONT"},
		Example: "#Version: 1.0\n#Fields: date time x-edge-location sc-bytes c-ip cs-method cs(Host) cs-uri-stem sc-status cs(Referer) cs(User-Agent) cs-uri-query cs(Cookie) x-edge-result-type x-edge-request-id x-host-header cs-protocol cs-bytes time-taken x-forwarded-for\n" +
			"2018-04-17\t06:25:06\tFRA2\t512\t192.0.2.1\tGET\td1.cloudfront.example\t/cart\t200\thttps://shop.example/\tWren/2.1\titem=7\t-\tMiss\tMRVMF7KydIvx\tshop.example\thttps\t34\t0.042\t-",
	},
	{
		format: w3cFormat, About: "W3C Extended Log File Format, as IIS and others write it: columns are named by a line #Fields:", Aliases: []string{"W3C"},
		Example: "#Fields: date time s-ip cs-method cs-uri-stem cs-uri-query s-port cs-username c-ip cs(User-Agent) cs(Referer) sc-status sc-substatus sc-win32-status time-taken\n" +
			"2018-04-17 06:25:06 198.51.100.9 GET /cart item=7 443 ada 192.0.2.1 Wren/2.1 https://shop.example/ 200 0 0 42",
	},
	{
		format: jsonNginx, About: "JSON with the names of nginx's variables",
		Example: `{"time_local":"17/Apr/2018:06:25:06 +0000","remote_addr":"192.0.2.1","remote_user":"ada","request":"GET /cart?item=7 HTTP/1.1","status":"200","body_bytes_sent":"512","http_user_agent":"Wren/2.1"}`,
	},
	{
		format: jsonZeekDNS, About: "Zeek's dns.log in JSON with ISO times; the object is the name that was asked for",
		Example: `{"ts":"2018-04-17T06:25:06.250000Z","id.orig_h":"192.0.2.1","query":"shop.example"}`,
	},
	{
		format: messages, About: "messages about clients that failed or were refused, of sshd, mail and other servers and the kernel's firewall, in syslog or in their own logs",
		Example: `Apr 17 06:25:06 gate sshd[812]: Failed password for invalid user admin from 192.0.2.1 port 4711 ssh2`,
	},
	{
		format: plainText, About: "lines of any program with a time and one address where a client stands; the text is the field message. It comes last in detection",
		Example: "2018-04-17 06:25:06,250 WARN shop.auth: login of ada refused, client 192.0.2.1",
	},
	{
		format: plainTextDMY, About: "text with dates of three numbers that begin with the day", Example: "17/04/2018 06:25:06 shop.auth: login of ada refused, client 192.0.2.1",
	},
	{
		format: plainTextMDY, About: "text with dates of three numbers that begin with the month", Example: "04-17-2018 06:25:06 shop.auth: login of ada refused, client 192.0.2.1",
	},
	{
		format: journaldJSON, About: "journalctl -o json, with the same messages; journald-json:FORMAT reads messages of that format instead",
		Example: `{"__REALTIME_TIMESTAMP":"1523946306250000","SYSLOG_IDENTIFIER":"sshd","_PID":"812","MESSAGE":"Failed password for invalid user admin from 192.0.2.1 port 4711 ssh2"}`,
	},
	{
		format: syslogPrefix, About: "lines of another format behind the time, host and program of syslog; the format is recognised or given, as in the four formats below: syslog:FORMAT",
		Example: "Apr 17 06:25:06 gate nginx[812]: " + clfExample,
	},
	{format: composePrefix, About: "docker compose logs: the name of a container and a bar in front of each line", Example: "web-1  | " + clfExample},
	{format: kubectlPrefix, About: "kubectl logs --prefix: the pod and the container in brackets in front of each line", Example: "[pod/web-1/nginx] " + clfExample},
	{format: sternPrefix, About: "stern: the pod and the container in front of each line", Example: "web-1 nginx " + clfExample},
	{format: grepPrefix, About: "grep: the name of a file, and maybe the number of the line, in front of each line", Example: "access.log:12:" + clfExample},
	{
		format: dockerJSON, About: "lines of a container, of Docker or Kubernetes (CRI), with lines of another format inside, which is recognised or given: docker-json:FORMAT",
		Example: `{"log":"192.0.2.1 - ada [17/Apr/2018:06:25:06 +0000] \"GET /cart?item=7 HTTP/1.1\" 200 512\n","stream":"stdout","time":"2018-04-17T06:25:06.250000001Z"}`,
	},
}

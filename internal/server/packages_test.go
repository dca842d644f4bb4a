package server

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// packaged returns the one package of that form that `make packages VERSION=1.2.3` has
// made, or skips.
func packaged(t *testing.T, pattern string) string {
	t.Helper()
	dir := os.Getenv("LATELY_PACKAGES")
	if dir == "" {
		t.Skip("LATELY_PACKAGES names no folder with packages: make test-packages")
	}
	found, err := filepath.Glob(filepath.Join(dir, pattern))
	if err != nil || len(found) != 1 {
		t.Fatalf("%s has the packages %q, %v", dir, found, err)
	}
	return found[0]
}

// have skips the test unless the program is installed.
func have(t *testing.T, program string) {
	t.Helper()
	if _, err := exec.LookPath(program); err != nil {
		t.Skip("SKIP:", err)
	}
}

// installs is run as root in a mount namespace of its own: it installs the package in a copy of the system, does what an
// administrator and the service do, checks the files, and purges it.
const installs = `set -e
mount -t tmpfs tmpfs "$2"
mkdir "$2/upper" "$2/work" "$2/root"
mount -t overlay overlay -o "lowerdir=/,upperdir=$2/upper,workdir=$2/work" "$2/root"
cp "$1" "$2/root/tmp/lately.deb"
mount -t proc proc "$2/root/proc"
chroot "$2/root" sh -e <<'END'
dpkg -i /tmp/lately.deb >/dev/null
lately version
lately validate --config /etc/lately/lately.yaml
zcat /usr/share/man/man1/lately-serve.1.gz | head -2
for file in $(dpkg -L lately); do if test -f "$file"; then echo "$file"; fi; done
# As systemctl enable, and the service with DynamicUser=.
mkdir -p /etc/systemd/system/multi-user.target.wants /var/lib/private/lately
ln -s /usr/lib/systemd/system/lately.service /etc/systemd/system/multi-user.target.wants
install -D -m 644 /usr/share/lately/nftables.conf /etc/systemd/system/lately.service.d/nftables.conf
ln -s private/lately /var/lib/lately
touch /var/lib/private/lately/tokens /etc/lately/other.yaml
dpkg --remove lately >/dev/null 2>&1
test -e /etc/lately/rules.yaml -a -e /var/lib/lately/tokens || echo "LEFT OUT: remove has removed the state"
dpkg --purge lately >/dev/null 2>&1
find /etc /var/lib /usr -name '*lately*' -not -path '*/dpkg/*' -not -path '*/go*' -not -path '/usr/src/*' | sed 's/^/LEFT: /'
END
`

// TestPackagesInstall installs the deb, looks at what it brings, and purges it: nothing
// is left, no link that dangles either.
func TestPackagesInstall(t *testing.T) {
	deb := packaged(t, "*.deb")
	have(t, "dpkg")
	have(t, "unshare")
	if os.Getuid() != 0 {
		t.Skip("SKIP: only root can install a package")
	}
	out, err := exec.Command("unshare", "--mount", "sh", "-c", installs, "sh", deb, t.TempDir()).CombinedOutput()
	if err != nil && (bytes.Contains(out, []byte("mount:")) || bytes.Contains(out, []byte("unshare:"))) {
		t.Skipf("SKIP: no file system to install into: %v: %s", err, out)
	}
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, want := range []string{
		"lately 1.2.3 go", `"lately 1.2.3"`, "per-client: a client may make 600 requests",
		"/usr/bin/lately\n", "/usr/share/doc/lately/copyright\n", "/usr/share/doc/lately/changelog.Debian.gz\n", "/usr/share/doc/lately/changelog.gz\n",
		"/usr/share/lately/rules.schema.json\n", "/usr/share/lately/prometheus/alerts.yaml\n", "/usr/share/lately/grafana/lately.json\n",
		"/usr/share/lately/nftables.conf\n", "/usr/share/lately/packs/sshd.yaml\n", "/usr/share/lately/packs/sshd.test.yaml\n", "/usr/lib/systemd/system/lately.service\n",
	} {
		if !strings.Contains(string(out), want) {
			t.Errorf("installed without %q:\n%s", want, out)
		}
	}
	if strings.Contains(string(out), "LEFT") {
		t.Errorf("not all is as it was:\n%s", out)
	}
}

// rpmlint unpacks a package with absolute names, so as root it would install it. It runs in a read-only system, with one
// writable directory.
const rpmlint = `if [ "$(id -u)" != 0 ]; then exec rpmlint "$1"; fi
exec unshare --mount sh -c 'mount -o remount,bind,ro / && mount -t tmpfs tmpfs /var/tmp && TMPDIR=/var/tmp exec rpmlint "$1"' sh "$1"`

// TestPackagesAreLinted has Debian's and Red Hat's own checkers find no error, but for
// those that are meant.
func TestPackagesAreLinted(t *testing.T) {
	t.Run("deb", func(t *testing.T) {
		deb := packaged(t, "*.deb")
		have(t, "lintian")
		out, err := exec.Command("lintian", "--allow-root", "--fail-on", "error", deb).CombinedOutput()
		if err != nil || bytes.Contains(out, []byte("E: ")) {
			t.Errorf("%v\n%s", err, out)
		}
	})
	t.Run("rpm", func(t *testing.T) {
		rpm := packaged(t, "*.rpm")
		have(t, "rpmlint")
		out, _ := exec.Command("sh", "-c", rpmlint, "sh", rpm).CombinedOutput() // its status is not 0
		if bytes.Contains(out, []byte("mount:")) || bytes.Contains(out, []byte("unshare:")) {
			t.Skipf("SKIP: no read-only file system for rpmlint: %s", out)
		}
		if !bytes.Contains(out, []byte("packages: 1")) {
			t.Fatalf("%s", out)
		}
		for line := range strings.Lines(string(out)) {
			// The publisher of a package signs it. nfpm writes no classes of files, by which rpmlint would recognize the
			// binary.
			if strings.Contains(line, " E: ") && !strings.Contains(line, "no-signature") && !strings.Contains(line, "no-binary") {
				t.Error(line)
			}
		}
	})
}

// TestPackagesRPM checks the description and the files of the rpm.
func TestPackagesRPM(t *testing.T) {
	rpm := packaged(t, "*.rpm")
	have(t, "rpm")
	out, err := exec.Command("rpm", "-qp", "--nosignature", "--queryformat", "%{NAME} %{VERSION}-%{RELEASE} %{LICENSE}\n[%{FILENAMES}\n][%{CHANGELOGNAME}\n]", rpm).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, want := range []string{
		"lately 1.2.3-1 Apache-2.0\n", "/usr/bin/lately\n", "/usr/share/lately/nftables.conf\n", "/usr/share/lately/rules.schema.json\n",
		"/usr/share/doc/lately/copyright\n", "/usr/share/doc/lately/changelog.gz\n", "/etc/lately/rules.yaml\n", "lately@example.org",
	} {
		if !strings.Contains(string(out), want) {
			t.Errorf("the rpm is without %q:\n%s", want, out)
		}
	}
}

// TestPackagesBinary looks at the binary: its version is stamped, and it is stripped.
func TestPackagesBinary(t *testing.T) {
	program := packaged(t, "lately")
	if out, err := exec.Command(program, "version").Output(); err != nil || !strings.HasPrefix(string(out), "lately 1.2.3 ") {
		t.Errorf("%v\n%s", err, out)
	}
	have(t, "file")
	out, err := exec.Command("file", program).Output()
	if err != nil || !strings.Contains(string(out), ", stripped") || !strings.Contains(string(out), "statically linked") {
		t.Errorf("%v\n%s", err, out)
	}
	if runtime.GOARCH == "amd64" && !strings.Contains(string(out), "x86-64") {
		t.Errorf("it is for another machine:\n%s", out)
	}
}

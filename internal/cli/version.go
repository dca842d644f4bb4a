package cli

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// version may be set by the linker: -X github.com/lately-go/lately/internal/cli.version=v1.2.3.
var version string

func newVersion() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  flagsOnly,
		RunE: func(cmd *cobra.Command, _ []string) error {
			v := Version()
			if asJSON {
				return notWritten(writeJSON(cmd.OutOrStdout(), map[string]string{"version": v, "go": runtime.Version()}))
			}
			_, err := fmt.Fprintf(cmd.OutOrStdout(), "lately %s %s %s/%s\n", v, runtime.Version(), runtime.GOOS, runtime.GOARCH)
			return notWritten(err)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// Version returns the version of this build.
func Version() string {
	if version != "" {
		return version
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "(devel)"
}

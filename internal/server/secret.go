package server

import (
	"errors"
	"io/fs"

	"github.com/lately-go/lately/internal/store/secret"
)

const (
	secretName = "secret" // in the data directory
	maxSecret  = 256      // bytes of the file
)

// restoreSecret gives the engine the secret of the data directory, or keeps the engine's there. With a store, the file
// is what this server has while the store is away.
func (s *Server) restoreSecret() error {
	text, err := s.journal.ReadFile(secretName, maxSecret)
	if errors.Is(err, fs.ErrPermission) {
		return err // most likely the program was once run by another user
	}
	if err == nil && text != nil {
		var v secret.Value
		if v, err = secret.Parse(string(text)); err == nil {
			s.useSecret(v)
			return nil
		}
	}
	if err != nil {
		s.log.Error("the secret in the data directory is damaged and is replaced: ids of reservations from before are void, and hashed fields begin again at zero", "file", secretName, "error", err)
	}
	s.saveSecret(s.engine.Secret().Value())
	return nil
}

// useSecret makes v the secret of the engine.
func (s *Server) useSecret(v secret.Value) {
	if err := s.engine.SetSecret(v); err != nil {
		s.log.Error("plans by a hashed field cannot be read again for the new secret, and are not found: the default limits hold until the file is mended", "error", err)
	}
}

// saveSecret keeps the secret in the data directory, if there is one.
func (s *Server) saveSecret(v secret.Value) {
	if s.journal == nil {
		return
	}
	if err := s.journal.WriteFile(secretName, []byte(v.Text()+"\n")); err != nil {
		s.log.Error("the secret cannot be written to the data directory: after a restart, ids of reservations are void, and hashed fields begin again at zero", "error", err)
	}
}

// shareSecret makes the secret of the store, as it answered, that of the engine.
func (s *Server) shareSecret(text string) {
	v, err := secret.Parse(text)
	if err != nil {
		s.store.log.Error("the secret in the store is damaged: delete its key, and the servers set theirs again", "key", s.store.secretKey(), "error", err)
		return
	}
	if v == s.engine.Secret().Value() {
		return
	}
	s.useSecret(v)
	s.saveSecret(v)
	s.log.Info("this server now uses the secret of the store: ids that it made with another secret are void")
}

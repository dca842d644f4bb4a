package journal

import "bytes"

// AppendWait appends a record of type j and returns when it is on disk.
func (j *Journal) AppendWait(record []byte) error {
	p, err := j.Append('j', record)
	if err != nil {
		return err
	}
	return p.Wait()
}

// NewerFile returns a file as a version to come might write it.
func NewerFile() []byte {
	return append(appendPrefix(nil, version+1), bytes.Repeat([]byte("something else "), 10)...)
}

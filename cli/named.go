// This part of the package has the commands about one thing: N are the arguments that name it.

package cli

// topicName is the argument that names a topic.
type topicName struct {
	// Name of the topic.
	Topic string `arg:""`
}

// laneName are the arguments that name a lane.
type laneName struct {
	topicName
	// Name of the lane: by default the host and the port of the URL.
	Lane string `arg:""`
}

// scheduleName is the argument that names a schedule.
type scheduleName struct {
	// Name of the schedule.
	Schedule string `arg:""`
}

// namespaceName is the argument that names a namespace.
type namespaceName struct {
	// Name of the namespace.
	Name string `arg:""`
}

// jobID is the argument that names a job.
type jobID struct {
	// Id of the job.
	ID string `arg:""`
}

// workID is the argument that names work.
type workID struct {
	// Id of the work.
	ID string `arg:""`
}

// eventID is the argument that names an event.
type eventID struct {
	// Id of the event.
	ID string `arg:""`
}

// tokenID is the argument that names a token.
type tokenID struct {
	// Id of the token.
	ID string `arg:""`
}

// secretID is the argument that names a secret.
type secretID struct {
	// Id of the secret.
	ID string `arg:""`
}

// plainCommand is a command that needs nothing but a name.
type plainCommand[N any] struct {
	Of N `embed:""`
	call
}

// listCommand is a command that lists what belongs to a thing.
type listCommand[N any] struct {
	Of N `embed:""`
	page
	call
}

// changeCommand is a command that changes a thing as its name says.
type changeCommand[N any] struct {
	Of N `embed:""`
	conditional
	call
}

// setCommand is a command that changes settings.
type setCommand[N any] struct {
	Of N `embed:""`
	assigned
	conditional
	call
}

// assigned are the settings that a command changes.
type assigned struct {
	// NAME=VALUE, such as rate=100/s, breaker.failures=5 or rate=null. A value is JSON, else a text. The command get
	// shows the names.
	Settings []string `arg:"" optional:"" name:"setting" in:"assignments"`
	// JSON file with settings, - for the standard input.
	File string `short:"f" in:"file" placeholder:"FILE"`
}

// removeCommand is a command that removes a thing.
type removeCommand[N any] struct {
	Of N `embed:""`
	confirmed
	conditional
	call
}

// pauseCommand is a command that pauses a thing.
type pauseCommand[N any] struct {
	Of N `embed:""`
	pauseNote
	conditional
	call
}

// pauseNote is the flag of pauses.
type pauseNote struct {
	// Why, for those who find the pause.
	Note string `placeholder:"TEXT"`
}

// addSecretCommand is a command that adds a secret to a thing.
type addSecretCommand[N any] struct {
	Of N `embed:""`
	newSecret
	conditional
	call
}

// newSecret are the flags of new secrets.
type newSecret struct {
	// hmac: a shared secret. ed25519: a key of which receivers get the public half. Default: hmac.
	Kind string `placeholder:"hmac|ed25519"`
	// File with the secret, or @- for the standard input. Default: the server makes one, and shows it once.
	Secret string `in:"secret" field:"secret" placeholder:"@FILE"`
}

// removeSecretCommand is a command that removes a secret of a thing.
type removeSecretCommand[N any] struct {
	Of N `embed:""`
	secretID
	confirmed
	conditional
	call
}

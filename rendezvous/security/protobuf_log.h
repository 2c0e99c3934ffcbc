// The switch for the messages that Protobuf itself prints on stderr.
#ifndef RENDEZVOUS_SECURITY_PROTOBUF_LOG_H_
#define RENDEZVOUS_SECURITY_PROTOBUF_LOG_H_

namespace hvd::rendezvous::security {

// Silences them for the whole process, except those before an abort: whoever reaches a port could
// fill the terminal with lines about texts that are not UTF-8, which mean nothing to users. Every
// message that can't be read is handled where it is parsed. Thread-safe.
void SilenceProtobuf();

}  // namespace hvd::rendezvous::security

#endif  // RENDEZVOUS_SECURITY_PROTOBUF_LOG_H_

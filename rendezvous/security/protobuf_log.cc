#include "rendezvous/security/protobuf_log.h"

#include "google/protobuf/stubs/logging.h"

namespace hvd::rendezvous::security {

void SilenceProtobuf() {
  // Silent for as long as the object exists. Never destroyed: threads may log until the end.
  static const auto* const silencer = new google::protobuf::LogSilencer;
  static_cast<void>(silencer);
}

}  // namespace hvd::rendezvous::security

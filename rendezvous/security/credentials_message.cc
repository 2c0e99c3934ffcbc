#include "rendezvous/security/credentials_message.h"

namespace hvd::rendezvous::security {

pb::Credentials ToMessage(const PeerCredentials& credentials) {
  pb::Credentials message;
  message.set_token(credentials.token);
  message.set_ca_certificate(credentials.ca_certificate);
  message.set_certificate(credentials.certificate);
  message.set_private_key(credentials.private_key);
  return message;
}

PeerCredentials FromMessage(const pb::Credentials& message) {
  return {message.token(), message.ca_certificate(), message.certificate(), message.private_key()};
}

}  // namespace hvd::rendezvous::security

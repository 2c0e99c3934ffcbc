#include "rendezvous/store/credentials_message.h"

namespace hvd::rendezvous::store {

pb::journal::Credentials ToMessage(const security::PeerCredentials& credentials) {
  pb::journal::Credentials message;
  message.set_token(credentials.token);
  message.set_ca_certificate(credentials.ca_certificate);
  message.set_certificate(credentials.certificate);
  message.set_private_key(credentials.private_key);
  return message;
}

security::PeerCredentials FromMessage(const pb::journal::Credentials& message) {
  return {message.token(), message.ca_certificate(), message.certificate(), message.private_key()};
}

}  // namespace hvd::rendezvous::store

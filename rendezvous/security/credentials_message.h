// Conversion between credentials and their message. Pure.
#ifndef RENDEZVOUS_SECURITY_CREDENTIALS_MESSAGE_H_
#define RENDEZVOUS_SECURITY_CREDENTIALS_MESSAGE_H_

#include "proto/credentials.pb.h"
#include "rendezvous/security/job_credentials.h"

namespace hvd::rendezvous::security {

pb::Credentials ToMessage(const PeerCredentials& credentials);
PeerCredentials FromMessage(const pb::Credentials& message);

}  // namespace hvd::rendezvous::security

#endif  // RENDEZVOUS_SECURITY_CREDENTIALS_MESSAGE_H_

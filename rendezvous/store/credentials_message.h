// Conversion between credentials and their message in job stores. Pure.
#ifndef RENDEZVOUS_STORE_CREDENTIALS_MESSAGE_H_
#define RENDEZVOUS_STORE_CREDENTIALS_MESSAGE_H_

#include "proto/journal.pb.h"
#include "rendezvous/security/job_credentials.h"

namespace hvd::rendezvous::store {

pb::journal::Credentials ToMessage(const security::PeerCredentials& credentials);
security::PeerCredentials FromMessage(const pb::journal::Credentials& message);

}  // namespace hvd::rendezvous::store

#endif  // RENDEZVOUS_STORE_CREDENTIALS_MESSAGE_H_

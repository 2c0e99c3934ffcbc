// A client of an etcd cluster.
#ifndef RENDEZVOUS_ETCD_ETCD_CLIENT_H_
#define RENDEZVOUS_ETCD_ETCD_CLIENT_H_

#include <memory>
#include <string>
#include <vector>

#include "rendezvous/etcd/key_value_store.h"

namespace hvd::rendezvous::etcd {

struct EtcdAccess {
  std::vector<std::string> endpoints;  // "address:port" or "name:port"; at least one
  // PEM texts; empty: none. With a CA certificate, connections use TLS and check the servers'
  // certificates against it. With the other two, this client presents a certificate.
  std::string ca_certificate;
  std::string certificate;
  std::string private_key;
  // Empty: none.
  std::string user;
  std::string password;
};

// Creates a client. Each call goes to the member that answered the last one; if that member does
// not answer or has no quorum, the call is tried on the other members in turn, within the time
// limit of the call.
std::unique_ptr<KeyValueStore> NewEtcdClient(const EtcdAccess& access);

}  // namespace hvd::rendezvous::etcd

#endif  // RENDEZVOUS_ETCD_ETCD_CLIENT_H_

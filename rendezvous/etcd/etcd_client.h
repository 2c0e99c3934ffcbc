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
  // PEM texts. With the first, the connections are TLS, and the members' certificates are checked;
  // with the other two, this client has a certificate, too.
  std::string ca_certificate;
  std::string certificate;
  std::string private_key;
  // Empty: none.
  std::string user;
  std::string password;
};

// A call goes to the member that has answered last; if that does not answer, or has no quorum, to
// the next ones.
std::unique_ptr<KeyValueStore> NewEtcdClient(const EtcdAccess& access);

}  // namespace hvd::rendezvous::etcd

#endif  // RENDEZVOUS_ETCD_ETCD_CLIENT_H_

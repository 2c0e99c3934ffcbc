#include "rendezvous/etcd/etcd_client.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/net/tcp_socket.h"
#include "gtest/gtest.h"

namespace hvd::rendezvous::etcd {
namespace {

TEST(EtcdClientTest, NoMemberAnswers_CallsEndWithinTheirLimit) {
  std::vector<Fd> silent;  // the kernel accepts connections, and nobody reads from them
  EtcdAccess access;
  for (int i = 0; i < 3; ++i) {
    silent.push_back(*net::ListenOnAnyPort("127.0.0.1"));
    access.endpoints.push_back(absl::StrCat("127.0.0.1:", *net::PortOf(silent.back().get())));
  }
  const auto client = NewEtcdClient(access);
  const absl::Time begin = Clock::Real().Now();
  EXPECT_FALSE(client->KeepAlive(1, absl::Seconds(1)).ok());
  EXPECT_FALSE(client->Range({}, absl::Seconds(1)).ok());
  EXPECT_LT(Clock::Real().Now() - begin, absl::Seconds(8)) << "12 s without the limits";
}

}  // namespace
}  // namespace hvd::rendezvous::etcd

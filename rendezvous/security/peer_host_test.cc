#include "rendezvous/security/peer_host.h"

#include <string>

#include "gtest/gtest.h"
#include "rendezvous/security/job_credentials.h"

namespace hvd::rendezvous::security {
namespace {

TEST(PeerHostTest, CheckPeerHost_OwnHostOrAny_IsAllowed) {
  EXPECT_TRUE(CheckPeerHost("a", "a").ok());
  EXPECT_TRUE(CheckPeerHost(kAnyHost, "a").ok());
  const std::string longer = std::string(60, 'a') + ".example.org";
  EXPECT_TRUE(CheckPeerHost(longer.substr(0, 64), longer).ok());
}

TEST(PeerHostTest, CheckPeerHost_OtherHost_IsDeniedAndNamesBoth) {
  for (const char* other : {"b", "", "aa", "A"}) {
    EXPECT_TRUE(absl::IsPermissionDenied(CheckPeerHost(other, "a"))) << other;
  }
  EXPECT_EQ(CheckPeerHost("b", "a").message(), "its certificate is host b's, and not host a's");
}

}  // namespace
}  // namespace hvd::rendezvous::security

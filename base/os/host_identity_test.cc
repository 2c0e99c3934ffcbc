#include "base/os/host_identity.h"

#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include "gtest/gtest.h"

namespace hvd::os {
namespace {

// The identity of a child process that has done `first`; "unable" if it could not.
template <typename F>
std::string IdentityInChild(F first) {
  int fds[2];
  EXPECT_EQ(pipe(fds), 0);
  const pid_t child = fork();
  if (child == 0) {
    const std::string identity = first() ? HostIdentity() : "unable";
    _exit(write(fds[1], identity.data(), identity.size()) < 0);
  }
  close(fds[1]);
  char text[256];
  const ssize_t length = read(fds[0], text, sizeof(text));
  close(fds[0]);
  waitpid(child, nullptr, 0);
  return std::string(text, length > 0 ? length : 0);
}

TEST(HostIdentityTest, HostIdentity_OtherProcess_IsTheSame) {
  EXPECT_FALSE(HostIdentity().empty());
  EXPECT_EQ(IdentityInChild([] { return true; }), HostIdentity());
}

TEST(HostIdentityTest, HostIdentity_OtherNetworkNamespace_IsAnother) {
  const std::string other =
      IdentityInChild([] { return unshare(CLONE_NEWUSER | CLONE_NEWNET) == 0; });
  if (other == "unable") GTEST_SKIP() << "no namespaces to be had here";
  EXPECT_FALSE(other.empty());
  EXPECT_NE(other, HostIdentity());
}

}  // namespace
}  // namespace hvd::os

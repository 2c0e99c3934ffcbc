#include "launcher/job/handover.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "base/net/descriptor_passing.h"
#include "base/net/listen_address.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hvd::launcher::job {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

struct Caller {
  Caller() {
    int ends[2];
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    own.reset(ends[0]);
    launchers.reset(ends[1]);
  }
  // Reads everything until the launcher's end is closed.
  std::string Read(std::vector<Fd>& descriptors) const {
    std::string text;
    char buffer[16384];
    while (true) {
      pollfd readable = {own.get(), POLLIN, 0};
      poll(&readable, 1, -1);
      const auto got = net::ReceiveWithDescriptors(own.get(), buffer, sizeof(buffer), descriptors);
      if (!got.ok() || *got == 0) return text;
      text.append(buffer, *got);
    }
  }
  Fd own, launchers;
};

TEST(HandOver, CallerGetsSocketsThatListenWhereWorkersAreTold) {
  Caller caller;
  const auto workers = HandOver(std::move(caller.launchers), {"127.0.0.1:0", "127.0.0.1:0"});
  ASSERT_TRUE(workers.ok()) << workers.status();
  std::vector<Fd> listeners;
  const std::string callers = caller.Read(listeners);
  ASSERT_EQ(listeners.size(), 2u);
  EXPECT_THAT(*workers, HasSubstr(absl::StrCat(
                            "\"addresses\":[\"127.0.0.1:", net::BoundPort(listeners[0].get()),
                            "\",\"127.0.0.1:", net::BoundPort(listeners[1].get()), "\"]}")));
  for (const Fd& listener : listeners) {
    int listens = 0;
    socklen_t length = sizeof(listens);
    EXPECT_EQ(getsockopt(listener.get(), SOL_SOCKET, SO_ACCEPTCONN, &listens, &length), 0);
    EXPECT_EQ(listens, 1);
  }
  for (const std::string& side : {callers, *workers}) {
    EXPECT_THAT(side, ContainsRegex("\"ca\":\"-----BEGIN CERTIFICATE"));
    EXPECT_THAT(side, ContainsRegex("\"certificate\":\"-----BEGIN CERTIFICATE"));
    EXPECT_THAT(side, ContainsRegex("\"key\":\"-----BEGIN PRIVATE KEY"));
  }
  EXPECT_THAT(callers, Not(HasSubstr("addresses")));
}

TEST(HandOver, NonUnixSocketIsRefused) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const Fd read(ends[0]);
  const auto workers = HandOver(Fd(ends[1]), {"127.0.0.1:0"});
  EXPECT_EQ(workers.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(workers.status().message()), HasSubstr("--handover"));
}

TEST(HandOver, AddressThatIsNotHereIsNamed) {
  Caller caller;
  const auto workers = HandOver(std::move(caller.launchers), {"192.0.2.1:0"});
  EXPECT_THAT(std::string(workers.status().message()), HasSubstr("192.0.2.1"));
}

}  // namespace
}  // namespace hvd::launcher::job

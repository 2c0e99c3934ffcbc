#include "collectives/shm/segment/segment_setup.h"

#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <ctime>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/synchronization/notification.h"
#include "collectives/conformance/memory_key_exchange.h"
#include "collectives/conformance/rank_group.h"
#include "collectives/shm/segment/segment_setup_protocol.h"
#include "gtest/gtest.h"

namespace hvd::collectives::shm::segment {
namespace {

// A key exchange that calls `meanwhile` with the name of rank 0's socket before it returns.
class WatchedExchange : public KeyExchange {
 public:
  using Meanwhile = std::function<void(const std::string& socket_name)>;
  WatchedExchange(KeyExchange& keys, Meanwhile meanwhile)
      : keys_(keys), meanwhile_(std::move(meanwhile)) {}

  absl::StatusOr<std::vector<std::string>> AllGather(absl::string_view key, absl::string_view value,
                                                     absl::Duration timeout) override {
    auto values = keys_.AllGather(key, value, timeout);
    if (values.ok()) meanwhile_(values->at(0).substr(0, values->at(0).size() - kNonceBytes));
    return values;
  }

 private:
  KeyExchange& keys_;
  const Meanwhile meanwhile_;
};

// All ranks run the setup; `meanwhile` is called before rank 1 connects to the socket.
std::vector<absl::Status> MeetWhile(int ranks, const WatchedExchange::Meanwhile& meanwhile) {
  conformance::KeyExchangeTable table(ranks);
  std::vector<absl::Status> statuses(static_cast<size_t>(ranks));
  conformance::ForEachRank(ranks, [&](int rank) {
    const std::unique_ptr<KeyExchange> own_keys = table.ForRank(rank);
    WatchedExchange keys(*own_keys, [&](const std::string& name) {
      if (rank == 1) meanwhile(name);
    });
    statuses[rank] =
        SetUpSegment({Epoch(1), rank, ranks, "", "secret"}, keys, absl::Seconds(60)).status();
  });
  return statuses;
}

Fd ConnectTo(const std::string& name) {
  Fd fd = NewSocket();
  socklen_t length = 0;
  const sockaddr_un address = AddressOf(name, &length);
  EXPECT_EQ(connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), length), 0);
  return fd;
}

void ClaimToBe(int rank, const Fd& link) {
  const Fd bell(eventfd(0, EFD_CLOEXEC));
  EXPECT_EQ(Send(link.get(), Hello{rank, {}}, {bell.get()}), absl::OkStatus());
}

TEST(SegmentSetupTest, StrangersClaimEveryRankBeforeItComes_TheTrueOnesMeet) {
  std::vector<Fd> strangers;
  const auto statuses = MeetWhile(3, [&](const std::string& name) {
    for (const int rank : {1, 2, 1, 0, 3, -1}) {
      strangers.push_back(ConnectTo(name));
      ClaimToBe(rank, strangers.back());
    }
  });
  for (const absl::Status& status : statuses) EXPECT_EQ(status, absl::OkStatus());
}

TEST(SegmentSetupTest, ManySilentStrangers_MakeRoom) {
  std::vector<Fd> strangers;
  const auto statuses = MeetWhile(3, [&](const std::string& name) {
    for (int i = 0; i < 300; ++i) strangers.push_back(ConnectTo(name));
    pollfd first = {strangers.front().get(), POLLIN, 0};
    EXPECT_EQ(poll(&first, 1, 60000), 1) << "it was not hung up on";
  });
  for (const absl::Status& status : statuses) EXPECT_EQ(status, absl::OkStatus());
}

// The values that rank 1 of two gets from the key exchange if `name` is rank 0's socket.
class InvitedTo : public KeyExchange {
 public:
  explicit InvitedTo(std::string name) : name_(std::move(name)) {}
  absl::StatusOr<std::vector<std::string>> AllGather(absl::string_view key, absl::string_view value,
                                                     absl::Duration timeout) override {
    return std::vector<std::string>{name_ + std::string(kNonceBytes, 'n'), std::string(value)};
  }

 private:
  const std::string name_;
};

// Closes the connection, as rank 0 does with the oldest stranger, which may be a delayed rank.
TEST(SegmentSetupTest, Disconnected_ReconnectsWhileRank0Lives) {
  const std::string name = "hvd-segment-setup-test-" + std::to_string(getpid());
  Fd listener(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  socklen_t length = 0;
  const sockaddr_un address = AddressOf(name, &length);
  ASSERT_EQ(bind(listener.get(), reinterpret_cast<const sockaddr*>(&address), length), 0);
  ASSERT_EQ(listen(listener.get(), 1), 0);
  absl::Status met;
  conformance::ForEachRank(2, [&](int rank) {
    if (rank == 0) {
      for (int visit = 0; visit < 3; ++visit) {
        const Fd visitor(accept(listener.get(), nullptr, nullptr));
        EXPECT_TRUE(visitor.valid());
      }
      listener.reset();
    } else {
      InvitedTo keys(name);
      met = SetUpSegment({Epoch(1), 1, 2, "", "secret"}, keys, absl::Seconds(60)).status();
    }
  });
  EXPECT_EQ(met.code(), absl::StatusCode::kUnavailable) << met;
}

TEST(SegmentSetupTest, MemberThatNeverConfirms_IsNamed) {
  conformance::KeyExchangeTable table(2);
  absl::Notification over;
  absl::Status met;
  conformance::ForEachRank(2, [&](int rank) {
    const GroupInfo group{Epoch(1), rank, 2, "", "secret"};
    const std::unique_ptr<KeyExchange> keys = table.ForRank(rank);
    if (rank == 0) {
      met = SetUpSegment(group, *keys, absl::Milliseconds(500)).status();
      return over.Notify();
    }
    const Invitation invitation = Invite(group, *keys, "", absl::Seconds(60)).value();
    const Fd link = ConnectTo(invitation.socket_name), bell(eventfd(0, EFD_CLOEXEC));
    Hello hello{rank, {}};
    const std::string proof = Proof(group, invitation, rank);
    memcpy(hello.proof, proof.data(), sizeof(hello.proof));
    EXPECT_EQ(Send(link.get(), hello, {bell.get()}), absl::OkStatus());
    over.WaitForNotification();
  });
  EXPECT_EQ(met.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_NE(met.message().find("waited 500ms in vain for rank 1"), std::string::npos) << met;
}

TEST(SegmentSetupTest, NoFilesForAWhile_WaitsWithoutTurningAndGoesOn) {
  rlimit before = {};
  getrlimit(RLIMIT_NOFILE, &before);
  clock_t cpu = 0;
  const auto statuses = MeetWhile(2, [&](const std::string& name) {
    const Fd stranger = NewSocket();
    rlimit none = before;
    none.rlim_cur = static_cast<rlim_t>(Fd(dup(stranger.get())).get());
    setrlimit(RLIMIT_NOFILE, &none);
    cpu = clock();
    socklen_t length = 0;
    const sockaddr_un address = AddressOf(name, &length);
    EXPECT_EQ(connect(stranger.get(), reinterpret_cast<const sockaddr*>(&address), length), 0);
    poll(nullptr, 0, 2000);  // no file descriptors are available for this long
    cpu = clock() - cpu;
    setrlimit(RLIMIT_NOFILE, &before);
  });
  for (const absl::Status& status : statuses) EXPECT_EQ(status, absl::OkStatus());
  // CPU time within two seconds: a busy loop would use all of it.
  EXPECT_LT(cpu, CLOCKS_PER_SEC / 25);
}

}  // namespace
}  // namespace hvd::collectives::shm::segment

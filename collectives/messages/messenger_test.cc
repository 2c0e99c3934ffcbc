// Ranks that are threads of this process, on one host, on a host each, and on two hosts.
#include "collectives/messages/messenger.h"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <ostream>
#include <random>
#include <string>
#include <thread>  // NOLINT: several threads of a rank
#include <vector>

#include "absl/synchronization/notification.h"
#include "collectives/messages/messenger_group_testing.h"
#include "gtest/gtest.h"
#include "rendezvous/security/job_credentials.h"

namespace hvd::collectives::messages {
namespace {

struct Placement {
  const char* name;
  HostOf host_of;
  bool encrypted = false;
};
std::ostream& operator<<(std::ostream& out, const Placement& p) { return out << p.name; }

// The TLS context of the workers of one job.
std::shared_ptr<const net::TlsContext> NewTls() {
  const rendezvous::security::PeerCredentials issued =
      *(*rendezvous::security::JobAuthority::Create("job"))->IssueForHost("any host");
  return *net::TlsContext::Create({issued.ca_certificate, issued.certificate, issued.private_key});
}

// Random enough, and fast.
std::string Text(size_t bytes, unsigned seed) {
  std::string text(bytes, '\0');
  uint64_t word = seed * uint64_t{2654435761} + 1;
  for (size_t i = 0; i < bytes; i += sizeof(word)) {
    word = word * 6364136223846793005u + 1442695040888963407u;
    const uint64_t mixed = word ^ word >> 32;
    std::memcpy(&text[i], &mixed, std::min(sizeof(mixed), bytes - i));
  }
  return text;
}

class MessengerTest : public testing::TestWithParam<Placement> {
 protected:
  void Make(int size) {
    group_ = std::make_unique<MessengerGroup>(size, GetParam().host_of,
                                              GetParam().encrypted ? NewTls() : nullptr);
  }
  Messenger& at(int rank) { return group_->at(rank); }

  std::shared_ptr<Transfer> Send(int from, int to, uint64_t tag, const std::string& text) {
    return at(from).Send(to, {tag, 7}, text.data(), text.size());
  }
  std::shared_ptr<Transfer> Receive(int to, int from, uint64_t tag, std::string& text) {
    return at(to).Receive(from, {tag, 7}, &text[0], text.size());
  }

  std::unique_ptr<MessengerGroup> group_;
};

INSTANTIATE_TEST_SUITE_P(Placements, MessengerTest,
                         testing::Values(Placement{"OneHost", OneHost}, Placement{"Apart", Apart},
                                         Placement{"Pairs", Pairs},
                                         Placement{"Encrypted", Apart, true}),
                         [](const auto& info) { return info.param.name; });

TEST_P(MessengerTest, AnySize_ArrivesWhicheverEndIsFirst) {
  Make(4);
  const size_t sizes[] = {0, 1, 8191, 8192, 8193, 100000, size_t{64} << 20};
  for (const int to : {1, 3}) {
    for (const size_t bytes : sizes) {
      for (const bool send_first : {true, false}) {
        const std::string sent = Text(bytes, to);
        std::string got(bytes, 'x');
        std::shared_ptr<Transfer> send, receive;
        if (send_first) send = Send(0, to, 1, sent);
        receive = Receive(to, 0, 1, got);
        if (!send_first) send = Send(0, to, 1, sent);
        ASSERT_EQ(Await(at(to), receive), absl::OkStatus());
        ASSERT_EQ(Await(at(0), send), absl::OkStatus());
        ASSERT_EQ(receive->source(), 0);
        ASSERT_TRUE(got == sent) << bytes << " bytes to rank " << to;
      }
    }
  }
}

TEST_P(MessengerTest, MessagesOfOneTag_ArriveInOrder) {
  Make(4);
  // Small ones, large ones, and more than the receiver keeps.
  constexpr int kMessages = 400;
  group_->Run([&](int rank, Messenger& messenger) {
    if (rank != 0 && rank != 3) return;
    std::vector<std::string> texts;
    std::vector<std::shared_ptr<Transfer>> transfers;
    for (int i = 0; i < kMessages; ++i) {
      const size_t bytes = i % 5 == 0 ? 20000 : 3000;
      texts.push_back(rank == 0 ? Text(bytes, i) : std::string(bytes, 'x'));
    }
    for (int i = 0; i < kMessages; ++i) {
      transfers.push_back(rank == 0 ? Send(0, 3, 5, texts[i]) : Receive(3, 0, 5, texts[i]));
      if (rank == 3 && i % 2 == 0) {
        ASSERT_EQ(Await(messenger, transfers[i]), absl::OkStatus());
      }
    }
    for (int i = 0; i < kMessages; ++i) {
      ASSERT_EQ(Await(messenger, transfers[i]), absl::OkStatus());
      ASSERT_TRUE(texts[i] == Text(texts[i].size(), i)) << i;
    }
  });
}

TEST_P(MessengerTest, OtherTags_DoNotWaitForEachOther) {
  Make(4);
  // Far more than the receiver keeps, before the message that is received first.
  std::vector<std::shared_ptr<Transfer>> sends;
  const std::string text = Text(8000, 1), large = Text(1 << 20, 2), last = Text(100, 3);
  for (int i = 0; i < 200; ++i) sends.push_back(Send(0, 3, 1, i % 50 == 0 ? large : text));
  sends.push_back(Send(0, 3, 2, last));
  std::string got(100, 'x');
  ASSERT_EQ(Await(at(3), Receive(3, 0, 2, got)), absl::OkStatus());
  EXPECT_EQ(got, last);
  for (int i = 0; i < 200; ++i) {
    std::string next(i % 50 == 0 ? large.size() : text.size(), 'x');
    ASSERT_EQ(Await(at(3), Receive(3, 0, 1, next)), absl::OkStatus());
    ASSERT_TRUE(next == (i % 50 == 0 ? large : text));
  }
  for (const auto& send : sends) ASSERT_EQ(Await(at(0), send), absl::OkStatus());
}

TEST_P(MessengerTest, AnySource_TakesFromAllAndSaysWhose) {
  Make(4);
  constexpr int kEach = 20;
  const auto bytes_of = [](int i) { return i % 2 == 0 ? size_t{1000} : size_t{30000}; };
  group_->Run([&](int rank, Messenger& messenger) {
    std::map<int, int> from;
    for (int i = 0; i < (rank > 0 ? kEach : 3 * kEach); ++i) {
      if (rank > 0) {
        const std::string text = Text(bytes_of(i), 10 * i + rank);
        ASSERT_EQ(Await(messenger, Send(rank, 0, i % 2, text)), absl::OkStatus());
        continue;
      }
      // Each rank's messages of tag 0 and 1 alternate, but those of different ranks don't wait.
      std::string got(bytes_of(i % 2), 'x');
      const auto receive = Receive(0, kAnySource, i % 2, got);
      ASSERT_EQ(Await(messenger, receive), absl::OkStatus());
      const int source = receive->source();
      const int number = from[2 * source + i % 2]++;
      ASSERT_TRUE(got == Text(got.size(), 10 * (2 * number + i % 2) + source));
    }
  });
}

TEST_P(MessengerTest, Self_ReceivesWhatItSends) {
  Make(2);
  for (const size_t bytes : {size_t{0}, size_t{5}, size_t{1} << 20}) {
    const std::string sent = Text(bytes, 1);
    std::string first(bytes, 'x'), second(bytes, 'x');
    const auto send = Send(1, 1, 1, sent);
    const auto receive = Receive(1, 1, 1, first);
    const auto any = Receive(1, kAnySource, 1, second);
    ASSERT_EQ(Await(at(1), receive), absl::OkStatus());
    ASSERT_EQ(Await(at(1), send), absl::OkStatus());
    ASSERT_EQ(Await(at(1), Send(1, 1, 1, sent)), absl::OkStatus());
    ASSERT_EQ(Await(at(1), any), absl::OkStatus());
    EXPECT_EQ(any->source(), 1);
    EXPECT_TRUE(first == sent && second == sent);
  }
}

// Two ranks' sequences of messages to each other are the same at both ends.
struct Letter {
  uint64_t tag;
  size_t bytes;
};
std::vector<Letter> LettersOf(int from, int to, unsigned seed) {
  std::mt19937 random(seed * 1000 + from * 10 + to);
  std::vector<Letter> letters(60);
  for (Letter& letter : letters) {
    const size_t limits[] = {1, 100, 8192, 9000, 200000};
    letter = {random() % 3, random() % limits[random() % 5]};
  }
  return letters;
}

TEST_P(MessengerTest, AllToAll_OfRandomSizesAndTagsArrivesUnchanged) {
  Make(4);
  const unsigned seed = std::random_device()();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  group_->Run([&](int rank, Messenger& messenger) {
    struct Open {
      std::string text;
      std::shared_ptr<Transfer> transfer;
      unsigned content;
    };
    std::vector<Open> open;
    open.reserve(1000);
    std::mt19937 random(seed + rank);
    std::vector<int> order;  // twice the peer, and one more for a receive
    std::map<int, size_t> next;
    for (int peer = 0; peer < 4; ++peer) {
      order.insert(order.end(), 60, 2 * peer);
      order.insert(order.end(), 60, 2 * peer + 1);
    }
    std::shuffle(order.begin(), order.end(), random);
    for (const int each : order) {
      const int peer = each / 2;
      const bool sends = each % 2 == 0;
      const size_t i = next[each]++;
      const Letter letter = (sends ? LettersOf(rank, peer, seed) : LettersOf(peer, rank, seed))[i];
      const auto content = static_cast<unsigned>(1000 * (sends ? rank : peer) + i);
      open.push_back(
          {sends ? Text(letter.bytes, content) : std::string(letter.bytes, 'x'), nullptr, content});
      Open& o = open.back();
      o.transfer =
          sends ? Send(rank, peer, letter.tag, o.text) : Receive(rank, peer, letter.tag, o.text);
      if (random() % 200 == 0) messenger.WaitAWhile(*open[random() % open.size()].transfer);
    }
    for (const Open& o : open) {
      ASSERT_EQ(Await(messenger, o.transfer), absl::OkStatus());
      ASSERT_TRUE(o.text == Text(o.text.size(), o.content));
    }
  });
}

TEST_P(MessengerTest, NobodyWaits_TheMessengerMovesAllTheSame) {
  Make(4);
  for (const size_t bytes : {size_t{10}, size_t{3} << 20}) {
    const std::string sent = Text(bytes, 1);
    std::string got(bytes, 'x');
    absl::Notification was_sent, was_received;
    const auto receive =
        at(3).Receive(kAnySource, {1, 7}, &got[0], got.size(), [&] { was_received.Notify(); });
    const auto send = at(0).Send(3, {1, 7}, sent.data(), sent.size(), [&] { was_sent.Notify(); });
    was_received.WaitForNotification();
    was_sent.WaitForNotification();
    EXPECT_TRUE(receive->done() && send->done());
    EXPECT_TRUE(got == sent);
  }
}

TEST_P(MessengerTest, SeveralThreadsOfARank_WaitAtOnce) {
  Make(4);
  constexpr int kThreads = 4, kRounds = 100;
  group_->Run([&](int rank, Messenger& messenger) {
    if (rank != 0 && rank != 3) return;
    std::vector<std::thread> threads;
    for (int t = 0; t < kThreads; ++t) {
      threads.emplace_back([&, t] {
        for (int i = 0; i < kRounds; ++i) {
          const size_t bytes = i % 10 == 0 ? 100000 : 50;
          std::string text = rank == 0 ? Text(bytes, i) : std::string(bytes, 'x');
          const auto first = rank == 0 ? Send(0, 3, t, text) : Receive(3, 0, t, text);
          ASSERT_EQ(Await(messenger, first), absl::OkStatus());
          const auto second = rank == 0 ? Receive(0, 3, t, text) : Send(3, 0, t, text);
          ASSERT_EQ(Await(messenger, second), absl::OkStatus());
          ASSERT_TRUE(text == Text(bytes, i));
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
  });
}

TEST_P(MessengerTest, OtherSizeOrType_FailsAtBothEndsAndNothingElse) {
  Make(4);
  const std::string small = Text(16, 1), large = Text(100000, 2);
  for (const int to : {1, 3}) {
    for (const bool send_first : {true, false}) {
      std::string got(8, 'x');
      std::shared_ptr<Transfer> send, receive;
      if (send_first) send = Send(0, to, 3, large);
      receive = Receive(to, 0, 3, got);
      if (!send_first) send = Send(0, to, 3, large);
      EXPECT_EQ(
          Await(at(to), receive),
          absl::InvalidArgumentError("rank 0 sends 100000 bytes of tag 3, this rank receives 8"));
      EXPECT_EQ(Await(at(0), send),
                absl::InvalidArgumentError("this rank sends 100000 bytes of tag 3, rank " +
                                           std::to_string(to) + " receives 8"));
      // A small one has left already.
      if (send_first) send = Send(0, to, 3, small);
      receive = Receive(to, kAnySource, 3, got);
      if (!send_first) send = Send(0, to, 3, small);
      EXPECT_EQ(Await(at(to), receive),
                absl::InvalidArgumentError("rank 0 sends 16 bytes of tag 3, this rank receives 8"));
      EXPECT_EQ(Await(at(0), send), absl::OkStatus());
      got.resize(16);
      receive = at(to).Receive(0, {3, 4}, &got[0], got.size());
      send = Send(0, to, 3, small);
      EXPECT_EQ(Await(at(to), receive),
                absl::InvalidArgumentError(
                    "rank 0 sends elements of type 7 of tag 3, this rank receives type 4"));
      receive = Receive(to, 0, 3, got);
      send = Send(0, to, 3, small);
      EXPECT_EQ(Await(at(to), receive), absl::OkStatus());
      EXPECT_EQ(got, small);
    }
  }
}

TEST_P(MessengerTest, RankThatLeaves_FailsItsTransfersAndNoOther) {
  Make(4);
  const std::string small = Text(100, 1), large = Text(1 << 20, 2);
  for (const int from : {2, 3}) {
    std::string got(100, 'x'), other(100, 'x');
    // A connection in each direction, if any.
    ASSERT_EQ(Await(at(0), Send(0, from, 9, small)), absl::OkStatus());
    ASSERT_EQ(Await(at(from), Receive(from, 0, 9, got)), absl::OkStatus());
    ASSERT_EQ(Await(at(from), Send(from, 0, 9, small)), absl::OkStatus());
    ASSERT_EQ(Await(at(0), Receive(0, from, 9, got)), absl::OkStatus());

    const auto waiting = Receive(0, from, 1, got);
    const auto any = Receive(0, kAnySource, 2, other);
    const auto announced = Send(0, from, 3, large);
    ASSERT_EQ(Await(at(from), Send(from, 0, 4, small)), absl::OkStatus());
    group_->Leave(from);
    const auto gone =
        absl::UnavailableError("rank " + std::to_string(from) + " is gone: it has left");
    EXPECT_EQ(Await(at(0), waiting), gone);
    EXPECT_EQ(Await(at(0), announced), gone);
    // What was sent before is still there, but nothing else will come.
    EXPECT_EQ(Await(at(0), Receive(0, from, 4, got)), absl::OkStatus());
    EXPECT_EQ(got, small);
    EXPECT_EQ(Await(at(0), Receive(0, from, 4, got)), gone);
    EXPECT_EQ(Await(at(0), Send(0, from, 4, small)), gone);
    EXPECT_FALSE(any->done());
    ASSERT_EQ(Await(at(1), Send(1, 0, 2, small)), absl::OkStatus());
    EXPECT_EQ(Await(at(0), any), absl::OkStatus());
    EXPECT_EQ(other, small);
  }
}

TEST_P(MessengerTest, AllOthersLeave_AnySourceFails) {
  Make(3);
  const std::string small = Text(100, 1);
  std::string got(100, 'x'), word(1, 'x');
  for (const int from : {1, 2}) {  // connects
    ASSERT_EQ(Await(at(from), Send(from, 0, 9, small)), absl::OkStatus());
    ASSERT_EQ(Await(at(0), Receive(0, from, 9, got)), absl::OkStatus());
  }
  const auto any = Receive(0, kAnySource, 1, got);
  group_->Leave(1);
  group_->Leave(2);
  EXPECT_EQ(Await(at(0), any), absl::UnavailableError("all other ranks are gone"));
  EXPECT_EQ(Await(at(0), Receive(0, kAnySource, 1, got)),
            absl::UnavailableError("all other ranks are gone"));
}

TEST_P(MessengerTest, Close_FailsTransfersInFlight) {
  Make(2);
  const std::string large = Text(1 << 20, 1);
  std::string got(10, 'x');
  const auto send = Send(0, 1, 1, large);
  absl::Notification called;
  const auto receive = at(0).Receive(1, {1, 7}, &got[0], 10, [&] { called.Notify(); });
  group_->Leave(0);
  EXPECT_TRUE(called.HasBeenNotified());
  EXPECT_EQ(receive->status().code(), absl::StatusCode::kAborted);
  EXPECT_EQ(send->status().code(), absl::StatusCode::kAborted);
}

TEST_P(MessengerTest, ForkedChild_LeavesTheParentAlone) {
  Make(2);
  const std::string sent = Text(100, 1);
  std::string got(100, 'x');
  const auto receive = Receive(0, 1, 1, got);
  const pid_t child = fork();
  if (child == 0) {
    const auto send = Send(1, 0, 1, Text(100, 2));
    const bool refused =
        send->done() && absl::IsFailedPrecondition(send->status()) && !at(0).WaitAWhile(*receive);
    at(0).Abort(absl::AbortedError("in the child"));
    group_.reset();
    _exit(refused ? 0 : 1);
  }
  int code = -1;
  waitpid(child, &code, 0);
  EXPECT_EQ(code, 0);
  ASSERT_EQ(Await(at(1), Send(1, 0, 1, sent)), absl::OkStatus());
  ASSERT_EQ(Await(at(0), receive), absl::OkStatus());
  EXPECT_EQ(got, sent);
}

TEST_P(MessengerTest, Abort_FailsTheTransfersOfAllRanks) {
  Make(4);
  const std::string small = Text(100, 1), large = Text(1 << 20, 1);
  std::string got(100, 'x');
  for (const int peer : {1, 2, 3}) {
    ASSERT_EQ(Await(at(0), Send(0, peer, 1, small)), absl::OkStatus());
    ASSERT_EQ(Await(at(peer), Receive(peer, 0, 1, got)), absl::OkStatus());
  }
  const absl::Status why = absl::DeadlineExceededError("enough");
  group_->Run([&](int rank, Messenger& messenger) {
    absl::Notification broken;
    absl::Status reason;
    messenger.OnBroken([&](const absl::Status& status) {
      reason = status;
      broken.Notify();
    });
    std::string text(100, 'x');
    const auto receive = Receive(rank, (rank + 1) % 4, 1, text);
    const auto send = Send(rank, (rank + 1) % 4, 2, large);
    std::thread aborting;
    if (rank == 0) aborting = std::thread([&] { messenger.Abort(why); });
    const absl::Status received = Await(messenger, receive), sent = Await(messenger, send);
    broken.WaitForNotification();
    EXPECT_EQ(received, reason);
    EXPECT_EQ(sent, reason);
    if (rank == 0) {
      EXPECT_EQ(reason, why);
      aborting.join();
    } else {
      EXPECT_EQ(reason.code(), absl::StatusCode::kUnavailable) << reason;
    }
    EXPECT_EQ(Await(messenger, Send(rank, 0, 1, small)), reason);
  });
}

TEST_P(MessengerTest, LargeMessagesInBothDirections_DoNotBlockEachOther) {
  Make(4);
  constexpr size_t kLarge = size_t{64} << 20;
  group_->Run([&](int rank, Messenger& messenger) {
    const int peer = rank ^ 3;
    const std::string sent = Text(kLarge, rank);
    std::string got(kLarge, 'x');
    const auto send = Send(rank, peer, 1, sent);
    const auto receive = Receive(rank, peer, 1, got);
    ASSERT_EQ(Await(messenger, send), absl::OkStatus());
    ASSERT_EQ(Await(messenger, receive), absl::OkStatus());
    ASSERT_TRUE(got == Text(kLarge, peer));
  });
}

}  // namespace
}  // namespace hvd::collectives::messages

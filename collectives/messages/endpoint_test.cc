// Endpoints over flows of this test, which take and give as many bytes as it says.
#include "collectives/messages/endpoint.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace hvd::collectives::messages {
namespace {

class Flow : public OutFlow, public InFlow {
 public:
  size_t Write(absl::string_view first, absl::string_view second) override {
    const size_t room = capacity - std::min(capacity, bytes.size());
    const size_t of_first = std::min(room, first.size());
    absl::StrAppend(&bytes, first.substr(0, of_first));
    const size_t of_second = of_first < first.size() ? 0 : std::min(room - of_first, second.size());
    absl::StrAppend(&bytes, second.substr(0, of_second));
    return of_first + of_second;
  }
  size_t piece_bytes() const override { return 1000; }
  size_t Read(char* to, size_t size) override {
    const size_t count = std::min({size, bytes.size(), at_once});
    std::memcpy(to, bytes.data(), count);
    bytes.erase(0, count);
    return count;
  }

  size_t capacity = 1 << 30;
  size_t at_once = 1 << 30;
  std::string bytes;
};

// The memory of this process.
class Memory : public PeerMemory {
 public:
  bool Available() override { return available; }
  bool Read(uint64_t address, char* to, size_t bytes) override {
    if (!readable) return false;
    std::memcpy(to, reinterpret_cast<const char*>(address), bytes);
    return true;
  }

  bool available = true;
  bool readable = true;
};

const absl::Status kGone = absl::UnavailableError("gone");

class EndpointTest : public testing::Test {
 protected:
  EndpointTest() {
    for (const int from : {0, 1, 2}) {
      for (const int to : {0, 1, 2}) {
        if (from == to) continue;
        ends_[from].SetOutFlow(to, &flows_[from][to]);
        ends_[to].SetInFlow(from, &flows_[from][to]);
      }
    }
  }

  TransferPtr Send(int from, int to, const std::string& text, uint64_t tag = 1) {
    return ends_[from].Send(to, {tag, 7}, text.data(), text.size(), nullptr);
  }
  TransferPtr Receive(int to, int from, std::string& text, uint64_t tag = 1) {
    return ends_[to].Receive(from, {tag, 7}, &text[0], text.size(), nullptr);
  }

  // Until nothing moves any more.
  void MoveAll() {
    for (bool moved = true; moved;) {
      moved = false;
      for (int end = 0; end < 3; ++end) {
        for (int peer = 0; peer < 3; ++peer) {
          if (peer == end || ends_[end].ended(peer)) continue;
          moved = ends_[end].Write(peer) || moved;
          const auto seen = ends_[end].Read(peer);
          ASSERT_TRUE(seen.ok()) << seen.status();
          moved = moved || seen->moved;
        }
        while (ends_[end].has_pulls()) {
          const Endpoint::Pull pull = ends_[end].NextPull();
          ends_[end].EndPull(pull.memory->Read(pull.address, pull.to, pull.bytes));
          moved = true;
        }
      }
    }
  }

  Endpoint ends_[3] = {Endpoint(0, 3), Endpoint(1, 3), Endpoint(2, 3)};
  Flow flows_[3][3];
  Memory memory_;
};

TEST_F(EndpointTest, SmallMessage_IsSentAtOnceAndKept) {
  const std::string sent = "hello";
  EXPECT_TRUE(Send(0, 1, sent)->done());
  MoveAll();
  std::string got(5, ' ');
  EXPECT_TRUE(Receive(1, 0, got)->done());
  EXPECT_EQ(got, sent);
}

TEST_F(EndpointTest, LargeMessage_MovesOnlyOnceItIsAskedFor) {
  const std::string sent(100000, 's');
  std::string got(100000, ' ');
  for (const bool reads_memory : {false, true}) {
    if (reads_memory) ends_[1].SetMemory(0, &memory_);
    const TransferPtr send = Send(0, 1, sent);
    MoveAll();
    EXPECT_FALSE(send->done());
    const TransferPtr receive = Receive(1, 0, got);
    MoveAll();
    EXPECT_TRUE(send->done() && receive->done());
    EXPECT_EQ(got, sent);
    got.assign(got.size(), ' ');
  }
}

TEST_F(EndpointTest, MemoryThatCantBeRead_TheSenderSendsTheBytes) {
  const std::string sent(100000, 's');
  for (const bool available : {false, true}) {
    memory_.available = available;
    memory_.readable = false;
    ends_[1].SetMemory(0, &memory_);
    std::string got(100000, ' ');
    const TransferPtr send = Send(0, 1, sent), receive = Receive(1, 0, got);
    MoveAll();
    EXPECT_EQ(receive->status(), absl::OkStatus());
    EXPECT_TRUE(send->done());
    EXPECT_EQ(got, sent);
  }
}

TEST_F(EndpointTest, PacketsInAnyParts_ArriveTheSame) {
  std::mt19937 random(std::random_device{}());
  std::vector<std::string> sent, got;
  for (int i = 0; i < 200; ++i)
    sent.emplace_back(random() % 10000, static_cast<char>('a' + i % 26));
  for (const std::string& text : sent) got.emplace_back(text.size(), ' ');
  std::vector<TransferPtr> transfers;
  for (int i = 0; i < 200; ++i) {
    flows_[0][1].capacity = 1 + random() % 200;
    flows_[0][1].at_once = 1 + random() % 100;
    transfers.push_back(Send(0, 1, sent[i]));
    if (random() % 3 == 0) MoveAll();
    transfers.push_back(Receive(1, i % 2 == 0 ? 0 : kAnySource, got[i]));
  }
  MoveAll();
  for (const TransferPtr& transfer : transfers) ASSERT_TRUE(transfer->done());
  EXPECT_EQ(got, sent);
}

TEST_F(EndpointTest, SendsWithoutReceives_StayWithinTheBound) {
  const std::string text(1000, 't');
  std::vector<TransferPtr> sends;
  for (int i = 0; i < 2000; ++i) sends.push_back(Send(0, 1, text));
  MoveAll();
  const auto at_once =
      std::count_if(sends.begin(), sends.end(), [](const TransferPtr& s) { return s->done(); });
  EXPECT_EQ(at_once, static_cast<int64_t>(kEagerWindow / EagerCost(1000)));
  for (int i = 0; i < 2000; ++i) {
    std::string got(1000, ' ');
    const TransferPtr receive = Receive(1, 0, got);
    MoveAll();
    ASSERT_TRUE(receive->done());
    ASSERT_EQ(got, text);
  }
  // The credit is back.
  EXPECT_TRUE(Send(0, 1, text)->done());
}

TEST_F(EndpointTest, Callbacks_AreOncePerTransfer) {
  int calls = 0;
  const std::string sent(100000, 's');
  std::string got(100000, ' ');
  ends_[0].Send(1, {1, 7}, sent.data(), sent.size(), [&] { ++calls; });
  ends_[1].Receive(0, {1, 7}, &got[0], got.size(), [&] { ++calls; });
  MoveAll();
  for (Endpoint& end : ends_) {
    end.Break(kGone);
    for (const auto& callback : end.TakeCallbacks()) callback();
  }
  EXPECT_EQ(calls, 2);
}

TEST_F(EndpointTest, PeerThatEnds_FailsItsTransfersInEveryState) {
  const std::string large(100000, 's'), small(1000, 't');
  std::string got(100000, ' '), posted(10, ' '), any(10, ' '), part(1000, ' '), kept(1000, ' ');
  Send(1, 0, small, 8);   // is there completely
  Send(1, 0, large, 10);  // is with the sender
  MoveAll();
  flows_[1][0].capacity = 100;
  Send(1, 0, small, 9);  // arrives in part
  ASSERT_TRUE(ends_[0].Read(1).ok());
  ends_[0].SetMemory(1, &memory_);
  std::vector<TransferPtr> transfers = {Receive(0, 1, posted, 2), Send(0, 1, large, 3),
                                        Receive(0, 1, part, 9)};
  const TransferPtr of_any = Receive(0, kAnySource, any, 5);
  const TransferPtr of_other = Receive(0, 2, got, 6);
  ends_[0].EndPeer(1, kGone);
  for (const TransferPtr& transfer : transfers) {
    ASSERT_TRUE(transfer->done());
    EXPECT_EQ(transfer->status(), kGone);
  }
  EXPECT_FALSE(of_any->done() || of_other->done());
  EXPECT_EQ(Receive(0, 1, kept, 8)->status(), absl::OkStatus());
  EXPECT_EQ(kept, small);
  EXPECT_EQ(Send(0, 1, small)->status(), kGone);
  const TransferPtr of_announced = Receive(0, 1, got, 10);
  ASSERT_TRUE(of_announced->done());
  EXPECT_EQ(of_announced->status(), kGone);
  ends_[0].EndPeer(2, kGone);
  EXPECT_TRUE(of_any->done() && of_other->done());
}

TEST_F(EndpointTest, PeerThatEndsDuringACopy_FailsTheReceiveAfterwards) {
  const std::string sent(100000, 's');
  std::string got(100000, ' ');
  ends_[1].SetMemory(0, &memory_);
  Send(0, 1, sent);
  const TransferPtr receive = Receive(1, 0, got);
  ASSERT_TRUE(ends_[1].Read(0).ok());
  ASSERT_TRUE(ends_[1].has_pulls());
  const Endpoint::Pull pull = ends_[1].NextPull();
  ends_[1].EndPeer(0, kGone);
  EXPECT_FALSE(receive->done());  // its memory is in use
  ends_[1].EndPull(true);
  EXPECT_EQ(pull.bytes, sent.size());
  ASSERT_TRUE(receive->done());
  EXPECT_EQ(receive->status(), kGone);
  EXPECT_FALSE(ends_[1].has_pulls());
}

TEST_F(EndpointTest, NonsenseFromAPeer_IsAnError) {
  const auto read = [&](const PacketHeader& header) {
    Endpoint end(0, 2);
    Flow flow;
    end.SetInFlow(1, &flow);
    flow.Write({reinterpret_cast<const char*>(&header), sizeof(header)}, {});
    return end.Read(1).status().code();
  };
  constexpr absl::StatusCode kLoss = absl::StatusCode::kDataLoss;
  EXPECT_EQ(read({static_cast<PacketKind>(99), 0, 0, 0, 0, 0}), kLoss);
  EXPECT_EQ(read({PacketKind::kEager, 0, 0, kEagerBytes + 1, 0, 0}), kLoss);
  EXPECT_EQ(read({PacketKind::kData, 0, 0, 1, 1, 0}), kLoss);
  EXPECT_EQ(read({PacketKind::kGrant, 0, 0, 0, 1, 1}), kLoss);
  EXPECT_EQ(read({PacketKind::kTaken, 0, 0, 0, 1, 0}), kLoss);
  EXPECT_EQ(read({PacketKind::kRefuse, 0, 0, 0, 1, 0}), kLoss);
  EXPECT_EQ(read({PacketKind::kCredit, 0, 0, ~uint64_t{0}, 0, 0}), absl::StatusCode::kOk);
}

TEST_F(EndpointTest, LastPacket_EndsTheStream) {
  ends_[0].SayLast(1, PacketKind::kGoodbye);
  MoveAll();
  EXPECT_EQ(ends_[1].last_packet(0), PacketKind::kGoodbye);
  EXPECT_EQ(ends_[1].last_packet(2), std::nullopt);
}

TEST_F(EndpointTest, PeerWithoutAFlow_IsNamedOnce) {
  Endpoint end(0, 2);
  const std::string text = "text";
  end.Send(1, {1, 7}, text.data(), text.size(), nullptr);
  end.Send(1, {1, 7}, text.data(), text.size(), nullptr);
  EXPECT_EQ(end.TakeUnreached(), std::vector<int>({1}));
  EXPECT_FALSE(end.has_unreached());
  EXPECT_FALSE(end.wants_to_write(1));
  Flow flow;
  end.SetOutFlow(1, &flow);
  EXPECT_TRUE(end.Write(1));
  EXPECT_EQ(flow.bytes.size(), 2 * (sizeof(PacketHeader) + text.size()));
}

}  // namespace
}  // namespace hvd::collectives::messages

// Fuzz target: packets of peers, in any order, beside sends and receives of this rank.
#include <algorithm>
#include <cstring>
#include <deque>
#include <memory>
#include <string>

#include "collectives/messages/endpoint.h"
#include "tests/support/fuzzing.h"

namespace hvd::collectives::messages {
namespace {

constexpr int kRanks = 3;  // this one is rank 0

class Stream : public OutFlow, public InFlow {
 public:
  size_t Write(absl::string_view first, absl::string_view second) override {
    const size_t written = std::min(room, first.size() + second.size());
    room -= written;
    return written;
  }
  size_t piece_bytes() const override { return 1000; }
  size_t Read(char* to, size_t size) override {
    const size_t count = std::min(size, bytes.size());
    std::memcpy(to, bytes.data(), count);
    bytes.erase(0, count);
    return count;
  }

  size_t room = 1 << 16;
  std::string bytes;  // from the peer
};

// A peer's memory, of which only some can be read.
class Memory : public PeerMemory {
 public:
  bool Available() override { return true; }
  bool Read(uint64_t address, char* to, size_t bytes) override {
    if (address % 2 == 0) return false;
    std::memset(to, 'm', bytes);
    return true;
  }
};

class Rank {
 public:
  Rank() {
    for (int peer = 1; peer < kRanks; ++peer) {
      endpoint_.SetOutFlow(peer, &streams_[peer]);
      endpoint_.SetInFlow(peer, &streams_[peer]);
    }
    endpoint_.SetMemory(1, &memory_);
  }

  void Next(InputParts& parts) {
    const uint8_t choice = parts.Byte();
    const int peer = choice / 16 % kRanks;
    switch (choice % 8) {
      case 0:
        return Receive(choice & 128 ? kAnySource : peer, parts);
      case 1:
        return Send(peer, parts);
      case 2:
      case 3:
        return TakePacket(std::max(peer, 1), parts);
      case 4:  // bytes that are no packet
        streams_[std::max(peer, 1)].bytes += std::string(parts.Take(parts.Byte()));
        return ReadAll(std::max(peer, 1));
      case 5:
        streams_[std::max(peer, 1)].room = parts.Number(2);
        endpoint_.Write(std::max(peer, 1));
        return;
      case 6:
        return Pull();
      default:
        if (choice & 128) endpoint_.EndPeer(peer, absl::UnavailableError("gone"));
        return;
    }
  }

  // Whatever has come, nothing is left over.
  void End() {
    endpoint_.SayLast(1, PacketKind::kGoodbye);
    if (endpoint_.has_pulls()) Pull();
    endpoint_.Break(absl::AbortedError("the end"));
    while (endpoint_.has_pulls()) Pull();
    CallBack();
    for (const TransferPtr& transfer : transfers_) Require(transfer->done(), "a transfer is done");
    Require(called_ == transfers_.size(), "each transfer has called back once");
    Require(!endpoint_.has_writers(), "nothing is left to be written");
  }

 private:
  char* NewBuffer(size_t bytes) {
    return buffers_.emplace_back(std::make_unique<char[]>(bytes)).get();
  }

  void Receive(int source, InputParts& parts) {
    const Message message = {parts.Byte(), parts.Byte()};
    const size_t bytes = parts.Number(2);
    transfers_.push_back(
        endpoint_.Receive(source, message, NewBuffer(bytes), bytes, [this] { ++called_; }));
  }

  void Send(int peer, InputParts& parts) {
    const Message message = {parts.Byte(), parts.Byte()};
    const size_t bytes = parts.Number(2);
    transfers_.push_back(
        endpoint_.Send(peer, message, NewBuffer(bytes), bytes, [this] { ++called_; }));
  }

  void TakePacket(int peer, InputParts& parts) {
    PacketHeader header = {};
    header.kind = static_cast<PacketKind>(parts.Byte() % 11);
    header.tag = parts.Byte();
    header.type = parts.Byte();
    header.bytes = parts.Number(2);
    header.id = parts.Byte();
    header.other = parts.Byte();
    std::string& bytes = streams_[peer].bytes;
    bytes.append(reinterpret_cast<const char*>(&header), sizeof(header));
    const bool has_payload = header.kind == PacketKind::kEager || header.kind == PacketKind::kData;
    if (has_payload) bytes.append(header.bytes, 'p');
    ReadAll(peer);
  }

  void ReadAll(int peer) {
    for (;;) {
      const auto seen = endpoint_.Read(peer);
      if (!seen.ok()) {
        RequireOneLine(seen.status());
        return endpoint_.EndPeer(peer, seen.status());
      }
      if (!seen->more) return CallBack();
    }
  }

  void Pull() {
    if (!endpoint_.has_pulls()) return;
    const Endpoint::Pull pull = endpoint_.NextPull();
    endpoint_.EndPull(pull.memory->Read(pull.address, pull.to, pull.bytes));
    CallBack();
  }

  void CallBack() {
    for (const auto& callback : endpoint_.TakeCallbacks()) callback();
    endpoint_.TakeUnreached();
  }

  Stream streams_[kRanks];
  Memory memory_;
  std::deque<std::unique_ptr<char[]>> buffers_;
  std::deque<TransferPtr> transfers_;
  size_t called_ = 0;
  Endpoint endpoint_{0, kRanks};
};

}  // namespace
}  // namespace hvd::collectives::messages

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  hvd::InputParts parts(data, size);
  hvd::collectives::messages::Rank rank;
  for (int i = 0; i < 200 && !parts.empty(); ++i) rank.Next(parts);
  rank.End();
  return 0;
}

#include "collectives/messages/endpoint.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "collectives/messages/mismatch.h"

namespace hvd::collectives::messages {
namespace {

// How much of a peer's memory is copied at a time: other transfers go on in between.
constexpr size_t kPullBytes = size_t{1} << 20;

void Copy(char* to, const char* from, size_t bytes) {
  if (bytes > 0) std::memcpy(to, from, bytes);
}

}  // namespace

Endpoint::Endpoint(int rank, int size) : rank_(rank), peers_(size), others_(size - 1) {}

// ---- The start of a transfer.

TransferPtr Endpoint::Send(int peer, const Message& message, const void* data, size_t bytes,
                           std::function<void()> then) {
  auto send = std::make_shared<Transfer>(Transfer::Direction::kSend, peer, message,
                                         const_cast<void*>(data), bytes, std::move(then));
  Peer& p = peers_[peer];
  if (!status_.ok() || !p.status.ok()) {
    Finish(send, status_.ok() ? p.status : status_);
  } else if (peer == rank_) {
    SendToSelf(send);
  } else if (p.credit.Spend(bytes)) {
    Queue(peer, {PacketKind::kEager, message.type, message.tag, bytes, 0, 0}, {send->data_, bytes},
          send);
  } else {
    const uint64_t id = next_id_++;
    p.announced[id] = send;
    Queue(peer, {PacketKind::kAnnounce, message.type, message.tag, bytes, id,
                 reinterpret_cast<uint64_t>(data)});
  }
  return send;
}

TransferPtr Endpoint::Receive(int source_or_any, const Message& message, void* data, size_t bytes,
                              std::function<void()> then) {
  auto receive = std::make_shared<Transfer>(Transfer::Direction::kReceive, source_or_any, message,
                                            data, bytes, std::move(then));
  const ArrivalPtr arrival = matcher_.TakeArrived(source_or_any, message.tag);
  if (arrival != nullptr) {
    Take(arrival, receive);
  } else if (!status_.ok()) {
    Finish(receive, status_);
  } else if (source_or_any != kAnySource && !peers_[source_or_any].status.ok()) {
    Finish(receive, peers_[source_or_any].status);
  } else {
    matcher_.Post(source_or_any, receive);
    ReachSources(source_or_any);
    if (source_or_any == kAnySource) EndAnySource();
  }
  return receive;
}

// A receive needs a connection only to learn of the end of its source, which may never have sent
// anything.
void Endpoint::ReachSources(int source_or_any) {
  for (int peer = 0; peer < size(); ++peer) {
    if (peer == rank_ || (source_or_any != kAnySource && source_or_any != peer)) continue;
    if (peers_[peer].outflow == nullptr && peers_[peer].status.ok()) Reach(peer);
  }
}

void Endpoint::Reach(int peer) {
  if (!std::exchange(peers_[peer].is_unreached, true)) unreached_.push_back(peer);
}

// A message of this rank to itself is copied once both are there, whatever its size.
void Endpoint::SendToSelf(TransferPtr send) {
  auto arrival = std::make_shared<Arrival>();
  arrival->kind = Arrival::Kind::kOwn;
  arrival->source = rank_;
  arrival->message = send->message_;
  arrival->bytes = send->bytes_;
  arrival->own = send;
  if (const TransferPtr receive = matcher_.TakePosted(rank_, send->message_.tag)) {
    Take(arrival, receive);
  } else {
    matcher_.Keep(std::move(arrival));
  }
}

// A receive meets a message, in either order, except for a small one that comes second: OnEager.
void Endpoint::Take(const ArrivalPtr& arrival, const TransferPtr& receive) {
  const Sizes sent = {arrival->message, arrival->bytes};
  const bool fits = Fits(sent, *receive);
  receive->peer_ = arrival->source;
  if (!fits) Finish(receive, MismatchAtReceiver(arrival->source, sent, *receive));
  switch (arrival->kind) {
    case Arrival::Kind::kPresent:
      GiveOut(arrival->source, arrival->bytes);
      if (!fits) return;
      if (arrival->complete) return CopyArrived(*arrival, receive);
      arrival->claimed = receive;
      return;
    case Arrival::Kind::kAnnounced:
      if (!fits) return Refuse(arrival->source, arrival->id, receive);
      return BeginLarge(arrival->source, arrival->id, arrival->address, receive);
    case Arrival::Kind::kOwn:
      if (fits) Copy(receive->data_, arrival->own->data_, arrival->bytes);
      if (fits) Finish(receive, absl::OkStatus());
      Finish(arrival->own, fits ? absl::OkStatus() : receive->status_);
      return;
  }
}

void Endpoint::CopyArrived(Arrival& arrival, const TransferPtr& receive) {
  Copy(receive->data_, arrival.data.get(), arrival.bytes);
  Finish(receive, absl::OkStatus());
}

void Endpoint::GiveOut(int peer, size_t bytes) {
  if (!peers_[peer].status.ok()) return;
  const size_t back = peers_[peer].debt.GiveOut(bytes);
  if (back > 0) Queue(peer, {PacketKind::kCredit, 0, 0, back, 0, 0});
}

// ---- Large messages.

void Endpoint::BeginLarge(int peer, uint64_t id, uint64_t address, const TransferPtr& receive) {
  PeerMemory* const memory = peers_[peer].memory;
  if (memory == nullptr || !memory->Available()) return Grant(peer, id, receive);
  pulls_.push_back({peer, id, address, receive});
}

void Endpoint::Grant(int peer, uint64_t id, const TransferPtr& receive) {
  const uint64_t own = next_id_++;
  receive->moved_ = 0;
  peers_[peer].granted[own] = receive;
  Queue(peer, {PacketKind::kGrant, 0, 0, 0, id, own});
}

void Endpoint::Refuse(int peer, uint64_t id, const TransferPtr& receive) {
  Queue(peer, {PacketKind::kRefuse, receive->message_.type, 0, receive->bytes_, id, 0});
}

Endpoint::Pull Endpoint::NextPull() {
  const Pulling& first = pulls_.front();
  const Transfer& receive = *first.receive;
  is_pulling_ = true;
  const size_t left = receive.bytes_ - receive.moved_;
  const size_t bytes = std::min(left, kPullBytes);
  return {first.peer,
          peers_[first.peer].memory,
          first.address + receive.moved_,
          receive.data_ + receive.moved_,
          bytes,
          bytes == left};
}

void Endpoint::EndPull(bool copied) {
  is_pulling_ = false;
  Pulling first = std::move(pulls_.front());
  pulls_.pop_front();
  const absl::Status failed = std::exchange(pull_failed_, absl::OkStatus());
  if (!failed.ok()) return Finish(first.receive, failed);
  if (!copied) return Grant(first.peer, first.id, first.receive);
  size_t& moved = first.receive->moved_;
  moved += std::min(first.receive->bytes_ - moved, kPullBytes);
  if (moved < first.receive->bytes_) return pulls_.push_back(std::move(first));
  Finish(first.receive, absl::OkStatus());
  Queue(first.peer, {PacketKind::kTaken, 0, 0, 0, first.id, 0});
}

// ---- Writing.

void Endpoint::Queue(int peer, const PacketHeader& header, absl::string_view payload,
                     TransferPtr completes) {
  Peer& p = peers_[peer];
  p.queue.push_back({header, payload, std::move(completes)});
  if (p.outflow == nullptr) {
    Reach(peer);
  } else if (p.queue.size() == 1) {
    Write(peer);
  }
}

// Pieces of the granted messages alternate, and only while no other packet waits.
void Endpoint::QueuePiece(Peer& peer) {
  const Stream stream = std::move(peer.streams.front());
  peer.streams.pop_front();
  Transfer& send = *stream.send;
  const size_t bytes = std::min(send.bytes_ - send.moved_, peer.outflow->piece_bytes());
  const absl::string_view piece(send.data_ + send.moved_, bytes);
  send.moved_ += bytes;
  const bool last = send.moved_ == send.bytes_;
  peer.queue.push_back({{PacketKind::kData, 0, 0, bytes, stream.receiver, 0}, piece, stream.send});
  if (last) return;
  peer.queue.back().completes = nullptr;
  peer.streams.push_back(stream);
}

bool Endpoint::Write(int peer) {
  Peer& p = peers_[peer];
  bool moved = false;
  while (wants_to_write(peer)) {
    if (p.queue.empty()) QueuePiece(p);
    Outgoing& packet = p.queue.front();
    const absl::string_view header(reinterpret_cast<const char*>(&packet.header),
                                   sizeof(packet.header));
    const size_t header_done = std::min(packet.written, header.size());
    const size_t written = p.outflow->Write(header.substr(header_done),
                                            packet.payload.substr(packet.written - header_done));
    packet.written += written;
    moved = moved || written > 0;
    if (packet.written < header.size() + packet.payload.size()) break;
    if (packet.completes != nullptr) Finish(packet.completes, absl::OkStatus());
    p.queue.pop_front();
  }
  CountWriter(p);
  return moved;
}

void Endpoint::SayLast(int peer, PacketKind kind) {
  Peer& p = peers_[peer];
  if (p.outflow == nullptr || !p.status.ok()) return;
  Write(peer);
  if (!p.queue.empty()) return;
  const PacketHeader header = {kind, 0, 0, 0, 0, 0};
  p.outflow->Write({reinterpret_cast<const char*>(&header), sizeof(header)}, {});
}

// ---- The end.

void Endpoint::EndPeer(int peer, const absl::Status& why) {
  Peer& p = peers_[peer];
  if (!p.status.ok()) return;
  p.status = why;
  if (peer != rank_) --others_;
  std::vector<TransferPtr> failed = matcher_.TakeAllPosted(peer);
  for (Outgoing& packet : p.queue) failed.push_back(std::move(packet.completes));
  for (Stream& stream : p.streams) failed.push_back(std::move(stream.send));
  for (auto& [id, send] : p.announced) failed.push_back(std::move(send));
  for (auto& [id, receive] : p.granted) failed.push_back(std::move(receive));
  failed.push_back(std::move(p.incoming.receive));
  if (p.incoming.arrival != nullptr) failed.push_back(std::move(p.incoming.arrival->claimed));
  p.queue.clear();
  p.streams.clear();
  p.announced.clear();
  p.granted.clear();
  p.incoming = {};
  CountWriter(p);
  std::deque<Pulling> kept;
  for (size_t i = 0; i < pulls_.size(); ++i) {
    // One whose memory is being written fails when that has ended.
    const bool busy = i == 0 && is_pulling_;
    if (pulls_[i].peer != peer || busy) {
      if (pulls_[i].peer == peer) pull_failed_ = why;
      kept.push_back(std::move(pulls_[i]));
    } else {
      failed.push_back(std::move(pulls_[i].receive));
    }
  }
  pulls_ = std::move(kept);
  matcher_.Drop(peer, [&](const Arrival& arrival) {
    if (arrival.kind == Arrival::Kind::kOwn) failed.push_back(arrival.own);
    return !arrival.complete;
  });
  for (const TransferPtr& transfer : failed) {
    if (transfer != nullptr && !transfer->done()) Finish(transfer, why);
  }
  EndAnySource();
}

// A receive from any rank can still get a message as long as another rank is there. A group of one
// rank has no other one.
void Endpoint::EndAnySource() {
  if (others_ > 0 || (size() == 1 && status_.ok())) return;
  const absl::Status why =
      !status_.ok() ? status_ : absl::UnavailableError("all other ranks are gone");
  for (const TransferPtr& receive : matcher_.TakeAllPosted(kAnySource)) Finish(receive, why);
}

void Endpoint::Break(const absl::Status& why) {
  if (!status_.ok()) return;
  status_ = why;
  for (int peer = 0; peer < size(); ++peer) EndPeer(peer, why);
}

void Endpoint::Finish(const TransferPtr& transfer, const absl::Status& status) {
  transfer->status_ = status;
  if (transfer->then_) callbacks_.push_back(std::move(transfer->then_));
  transfer->done_.store(true, std::memory_order_release);
}

}  // namespace hvd::collectives::messages

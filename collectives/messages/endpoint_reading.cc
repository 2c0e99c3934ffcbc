// The endpoint's side that reads: what the packets of a peer do to the transfers.
#include <algorithm>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "collectives/messages/endpoint.h"
#include "collectives/messages/mismatch.h"

namespace hvd::collectives::messages {
namespace {

// After so many bytes a Read lets other peers have their turn.
constexpr size_t kReadBytes = size_t{1} << 20;

absl::Status Malformed(int peer) {
  return absl::DataLossError(absl::StrCat("rank ", peer, " has sent what no rank sends"));
}

}  // namespace

absl::StatusOr<Endpoint::Seen> Endpoint::Read(int peer) {
  Peer& p = peers_[peer];
  Incoming& incoming = p.incoming;
  Seen seen;
  for (size_t total = 0; p.status.ok() && !p.last_packet.has_value();) {
    if (total >= kReadBytes) {
      seen.more = true;
      break;
    }
    if (incoming.header_bytes < sizeof(PacketHeader)) {
      const size_t got =
          p.inflow->Read(reinterpret_cast<char*>(&incoming.header) + incoming.header_bytes,
                         sizeof(PacketHeader) - incoming.header_bytes);
      if (got == 0) break;
      seen.moved = true;
      total += got;
      incoming.header_bytes += got;
      if (incoming.header_bytes < sizeof(PacketHeader)) continue;
      RETURN_IF_ERROR(OnHeader(peer));
    }
    while (incoming.left > 0) {
      const size_t got = ReadPayload(p);
      if (got == 0) return seen;
      seen.moved = true;
      total += got;
    }
    OnPayload(peer);
    incoming.header_bytes = 0;
  }
  return seen;
}

size_t Endpoint::ReadPayload(Peer& peer) {
  Incoming& incoming = peer.incoming;
  const bool discard = incoming.to == nullptr;
  const size_t got =
      discard ? peer.inflow->Read(discarded_.data(), std::min(incoming.left, discarded_.size()))
              : peer.inflow->Read(incoming.to, incoming.left);
  incoming.left -= got;
  if (!discard) incoming.to += got;
  return got;
}

absl::Status Endpoint::OnHeader(int peer) {
  Peer& p = peers_[peer];
  switch (p.incoming.header.kind) {
    case PacketKind::kEager:
      return OnEager(peer);
    case PacketKind::kAnnounce:
      return OnAnnounce(peer);
    case PacketKind::kGrant:
      return OnGrant(peer);
    case PacketKind::kData:
      return OnData(peer);
    case PacketKind::kTaken:
    case PacketKind::kRefuse:
      return OnAnswer(peer);
    case PacketKind::kCredit:
      p.credit.Return(p.incoming.header.bytes);
      return absl::OkStatus();
    case PacketKind::kGoodbye:
    case PacketKind::kGaveUp:
      p.last_packet = p.incoming.header.kind;
      return absl::OkStatus();
  }
  return Malformed(peer);
}

absl::Status Endpoint::OnEager(int peer) {
  Peer& p = peers_[peer];
  Incoming& incoming = p.incoming;
  const PacketHeader& header = incoming.header;
  if (!p.debt.Arrive(header.bytes)) return Malformed(peer);
  incoming.left = header.bytes;
  const Sizes sent = {{header.tag, header.type}, header.bytes};
  if (TransferPtr receive = matcher_.TakePosted(peer, header.tag)) {
    receive->peer_ = peer;
    if (Fits(sent, *receive)) {
      incoming.to = receive->data_;
      incoming.receive = std::move(receive);
    } else {
      Finish(receive, MismatchAtReceiver(peer, sent, *receive));
    }
    GiveOut(peer, header.bytes);
    return absl::OkStatus();
  }
  auto arrival = std::make_shared<Arrival>();
  arrival->source = peer;
  arrival->message = sent.message;
  arrival->bytes = sent.bytes;
  if (sent.bytes > 0) arrival->data.reset(new char[sent.bytes]);
  incoming.to = arrival->data.get();
  incoming.arrival = arrival;
  matcher_.Keep(std::move(arrival));
  return absl::OkStatus();
}

absl::Status Endpoint::OnAnnounce(int peer) {
  const PacketHeader& header = peers_[peer].incoming.header;
  auto arrival = std::make_shared<Arrival>();
  arrival->kind = Arrival::Kind::kAnnounced;
  arrival->source = peer;
  arrival->message = {header.tag, header.type};
  arrival->bytes = header.bytes;
  arrival->id = header.id;
  arrival->address = header.other;
  if (const TransferPtr receive = matcher_.TakePosted(peer, header.tag)) {
    Take(arrival, receive);
  } else {
    matcher_.Keep(std::move(arrival));
  }
  return absl::OkStatus();
}

absl::Status Endpoint::OnGrant(int peer) {
  Peer& p = peers_[peer];
  const auto announced = p.announced.find(p.incoming.header.id);
  if (announced == p.announced.end()) return Malformed(peer);
  p.streams.push_back({std::move(announced->second), p.incoming.header.other});
  p.announced.erase(announced);
  Write(peer);
  return absl::OkStatus();
}

absl::Status Endpoint::OnData(int peer) {
  Peer& p = peers_[peer];
  const PacketHeader& header = p.incoming.header;
  const auto granted = p.granted.find(header.id);
  if (granted == p.granted.end()) return Malformed(peer);
  Transfer& receive = *granted->second;
  if (header.bytes > receive.bytes_ - receive.moved_) return Malformed(peer);
  p.incoming.receive = granted->second;
  p.incoming.to = receive.data_ + receive.moved_;
  p.incoming.left = header.bytes;
  receive.moved_ += header.bytes;
  if (receive.moved_ == receive.bytes_) p.granted.erase(granted);
  return absl::OkStatus();
}

// The receiver has copied a large message, or does not want it.
absl::Status Endpoint::OnAnswer(int peer) {
  Peer& p = peers_[peer];
  const PacketHeader& header = p.incoming.header;
  const auto announced = p.announced.find(header.id);
  if (announced == p.announced.end()) return Malformed(peer);
  const TransferPtr send = std::move(announced->second);
  p.announced.erase(announced);
  const bool taken = header.kind == PacketKind::kTaken;
  Finish(send,
         taken ? absl::OkStatus()
               : MismatchAtSender(*send, peer, {{send->message_.tag, header.type}, header.bytes}));
  return absl::OkStatus();
}

void Endpoint::OnPayload(int peer) {
  Incoming& incoming = peers_[peer].incoming;
  incoming.to = nullptr;
  if (const TransferPtr receive = std::move(incoming.receive)) {
    const bool small = incoming.header.kind == PacketKind::kEager;
    if (small || receive->moved_ == receive->bytes_) Finish(receive, absl::OkStatus());
  }
  incoming.receive = nullptr;
  if (const ArrivalPtr arrival = std::move(incoming.arrival)) {
    arrival->complete = true;
    if (const TransferPtr receive = std::move(arrival->claimed)) CopyArrived(*arrival, receive);
  }
  incoming.arrival = nullptr;
}

}  // namespace hvd::collectives::messages

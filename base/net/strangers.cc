#include "base/net/strangers.h"

#include <utility>

namespace hvd::net {

Strangers::Id Strangers::Add(std::string source) {
  const Id stranger = turns_ + 1;  // no other has this number: each uses up at least one turn
  Place& place = places_[stranger];
  place.source = std::move(source);
  Enter(stranger, place);
  return stranger;
}

void Strangers::Reach(Id stranger, Stage stage) {
  Place& place = places_.at(stranger);
  if (stage <= place.stage) return;
  Leave(place);
  place.stage = stage;
  Enter(stranger, place);
}

void Strangers::Remove(Id stranger) {
  const auto found = places_.find(stranger);
  Leave(found->second);
  places_.erase(found);
}

std::optional<Strangers::Id> Strangers::Surplus() const {
  for (const Crowd& crowd : crowds_) {
    if (crowd.size > most_) return OldestOfTheLargestSource(crowd);
  }
  return std::nullopt;
}

std::optional<Strangers::Id> Strangers::LeastLikelyMember() const {
  for (const Stage stage : {Stage::kSilent, Stage::kHeard}) {
    const Crowd& crowd = crowds_[static_cast<size_t>(stage)];
    if (crowd.size > 0) return OldestOfTheLargestSource(crowd);
  }
  return std::nullopt;
}

void Strangers::Enter(Id stranger, Place& place) {
  place.turn = ++turns_;
  Crowd& crowd = CrowdOf(place.stage);
  crowd.sources[place.source].emplace(place.turn, stranger);
  ++crowd.size;
}

void Strangers::Leave(const Place& place) {
  Crowd& crowd = CrowdOf(place.stage);
  const auto source = crowd.sources.find(place.source);
  source->second.erase(place.turn);
  if (source->second.empty()) crowd.sources.erase(source);
  --crowd.size;
}

// A search of all sources: there are at most as many as strangers, and one connection causes one.
std::optional<Strangers::Id> Strangers::OldestOfTheLargestSource(const Crowd& crowd) {
  const ByTurn* largest = nullptr;
  for (const auto& [source, strangers] : crowd.sources) {
    const bool larger =
        largest == nullptr || strangers.size() > largest->size() ||
        (strangers.size() == largest->size() && strangers.begin()->first < largest->begin()->first);
    if (larger) largest = &strangers;
  }
  if (largest == nullptr) return std::nullopt;
  return largest->begin()->second;
}

}  // namespace hvd::net

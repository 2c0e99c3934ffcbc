#include "collectives/messages/matcher.h"

#include <algorithm>
#include <utility>

namespace hvd::collectives::messages {

template <typename T>
T Matcher::TakeFirst(Queues<T>& queues, typename Queues<T>::iterator of_tag,
                     typename QueuesOfTag<T>::iterator queue) {
  T first = std::move(queue->second.front().item);
  queue->second.pop_front();
  if (queue->second.empty()) of_tag->second.erase(queue);
  if (of_tag->second.empty()) queues.erase(of_tag);
  return first;
}

TransferPtr Matcher::TakePosted(int source, uint64_t tag) {
  const auto of_tag = posted_.find(tag);
  if (of_tag == posted_.end()) return nullptr;
  const auto none = of_tag->second.end();
  auto first = of_tag->second.find(source);
  const auto any = of_tag->second.find(kAnySource);
  if (first == none || (any != none && any->second.front().number < first->second.front().number)) {
    first = any;
  }
  return first == none ? nullptr : TakeFirst(posted_, of_tag, first);
}

void Matcher::Keep(ArrivalPtr arrival) {
  auto& queue = arrived_[arrival->message.tag][arrival->source];
  queue.push_back({next_number_++, std::move(arrival)});
}

ArrivalPtr Matcher::TakeArrived(int source_or_any, uint64_t tag) {
  const auto of_tag = arrived_.find(tag);
  if (of_tag == arrived_.end()) return nullptr;
  const auto first =
      source_or_any != kAnySource
          ? of_tag->second.find(source_or_any)
          : std::min_element(of_tag->second.begin(), of_tag->second.end(),
                             [](const auto& a, const auto& b) {
                               return a.second.front().number < b.second.front().number;
                             });
  return first == of_tag->second.end() ? nullptr : TakeFirst(arrived_, of_tag, first);
}

void Matcher::Post(int source_or_any, TransferPtr receive) {
  auto& queue = posted_[receive->message().tag][source_or_any];
  queue.push_back({next_number_++, std::move(receive)});
}

std::vector<TransferPtr> Matcher::TakeAllPosted(int source_or_any) {
  std::vector<TransferPtr> taken;
  for (auto of_tag = posted_.begin(); of_tag != posted_.end();) {
    const auto queue = of_tag->second.find(source_or_any);
    if (queue != of_tag->second.end()) {
      for (auto& posted : queue->second) taken.push_back(std::move(posted.item));
      of_tag->second.erase(queue);
    }
    const auto current = of_tag++;
    if (current->second.empty()) posted_.erase(current);
  }
  return taken;
}

void Matcher::Drop(int source, absl::FunctionRef<bool(const Arrival&)> is_lost) {
  for (auto of_tag = arrived_.begin(); of_tag != arrived_.end();) {
    const auto queue = of_tag->second.find(source);
    if (queue != of_tag->second.end()) {
      queue->second.remove_if([&](const auto& kept) { return is_lost(*kept.item); });
      if (queue->second.empty()) of_tag->second.erase(queue);
    }
    const auto current = of_tag++;
    if (current->second.empty()) arrived_.erase(current);
  }
}

}  // namespace hvd::collectives::messages

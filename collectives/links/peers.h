// A subgroup of the ranks of links: a view of them with its own rank numbers.
#ifndef COLLECTIVES_LINKS_PEERS_H_
#define COLLECTIVES_LINKS_PEERS_H_

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "collectives/links/links.h"

namespace hvd::collectives::links {

// Shares the links. Thread-safety and errors as in Links; errors use the links' rank numbers.
class Peers {
 public:
  // Rank i of the subgroup is rank ranks[i] of the links.
  // REQUIRES: `ranks` contains links->rank().
  Peers(std::shared_ptr<Links> links, std::vector<int> ranks)
      : links_(std::move(links)),
        ranks_(std::move(ranks)),
        rank_(static_cast<int>(std::find(ranks_.begin(), ranks_.end(), links_->rank()) -
                               ranks_.begin())) {}

  int rank() const { return rank_; }
  int size() const { return static_cast<int>(ranks_.size()); }
  const std::vector<int>& ranks() const { return ranks_; }
  const std::shared_ptr<Links>& links() const { return links_; }

  // See Links::Connect; all of `peers` must call it in the same operation.
  absl::Status Connect(absl::Span<const int> peers, absl::Duration timeout) const {
    std::vector<int> of_links;
    of_links.reserve(peers.size());
    for (const int peer : peers) of_links.push_back(ranks_[peer]);
    return links_->Connect(of_links, timeout, nullptr);
  }
  absl::Status ConnectAll(absl::Duration timeout) const {
    return links_->Connect(ranks_, timeout, nullptr);
  }

  // See links::Region.
  class Region {
   public:
    Region(const Peers& peers, void* data, size_t bytes)
        : ranks_(peers.ranks_), region_(peers.links_->MakeRegion(data, bytes)) {}

    absl::Status Send(int peer, size_t offset, size_t bytes) {
      return region_->Send(ranks_[peer], offset, bytes);
    }
    absl::Status Receive(int peer, size_t offset, size_t bytes) {
      return region_->Receive(ranks_[peer], offset, bytes);
    }
    absl::Status AwaitSent(int peer, absl::Duration timeout) {
      return region_->AwaitSent(ranks_[peer], timeout);
    }
    absl::Status AwaitReceived(int peer, absl::Duration timeout) {
      return region_->AwaitReceived(ranks_[peer], timeout);
    }

   private:
    const std::vector<int>& ranks_;
    const std::unique_ptr<links::Region> region_;
  };

 private:
  const std::shared_ptr<Links> links_;
  const std::vector<int> ranks_;
  const int rank_;
};

}  // namespace hvd::collectives::links

#endif  // COLLECTIVES_LINKS_PEERS_H_

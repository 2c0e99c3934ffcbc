// Text fragments for messages of the membership: ranks, hosts, counts.
#ifndef RENDEZVOUS_PHRASES_PHRASES_H_
#define RENDEZVOUS_PHRASES_PHRASES_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace hvd::rendezvous::phrases {

// "rank 3 on host b"
std::string RankOnHost(int rank, absl::string_view host);

// "rank 3", "ranks 1, 2". A long list is shortened to its first elements and the number of the
// others.
std::string Ranks(const std::vector<int>& ranks);

// "host b", "hosts b, c", shortened in the same way.
std::string Hosts(const std::vector<std::string>& hosts);

// "1 rank", "4 ranks"
std::string Count(int count, absl::string_view noun);

// Converts text from a client or a process to one line: line breaks become spaces, the ends are
// trimmed, and other control characters, which could change the terminal of who reads the line, are
// written as escapes ("\\x1b").
std::string OneLine(absl::string_view text);

}  // namespace hvd::rendezvous::phrases

#endif  // RENDEZVOUS_PHRASES_PHRASES_H_

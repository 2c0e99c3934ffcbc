#include "launcher/discovery/hostfile.h"

#include <map>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/status_macros.h"
#include "base/text/given_file.h"
#include "base/text/names.h"
#include "launcher/discovery/host_list.h"

namespace hvd::launcher::discovery {
namespace {

// The longest host file: far more than the hosts of the largest job need.
constexpr size_t kMostMib = 64;

absl::StatusOr<rendezvous::membership::HostSlots> ParseLine(absl::string_view line) {
  const std::vector<absl::string_view> words =
      absl::StrSplit(line, absl::ByAnyChar(" \t\r\v\f"), absl::SkipEmpty());
  if (words.size() == 1) return ParseHost(words[0]);
  absl::string_view slots = words[1];
  if (words.size() > 2 || !absl::ConsumePrefix(&slots, "slots=")) {
    return absl::InvalidArgumentError(absl::StrCat(text::Quoted(absl::StrJoin(words, " ")),
                                                   " is not of the form 'name slots=N'"));
  }
  return MakeHost(words[0], slots);
}

}  // namespace

absl::StatusOr<std::vector<rendezvous::membership::HostSlots>> ParseHostfile(
    absl::string_view text, const std::string& file) {
  absl::ConsumePrefix(&text, "\xEF\xBB\xBF");  // a UTF-8 byte order mark
  std::vector<rendezvous::membership::HostSlots> hosts;
  std::map<std::string, int> seen;
  int number = 0;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    ++number;
    line = line.substr(0, line.find('#'));
    if (absl::StripAsciiWhitespace(line).empty()) continue;
    absl::StatusOr<rendezvous::membership::HostSlots> host = ParseLine(line);
    if (!host.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat(file, ":", number, ": ", host.status().message()));
    }
    const auto [first, is_new] = seen.emplace(host->host, number);
    if (!is_new) {
      return absl::InvalidArgumentError(absl::StrCat(file, ":", number, ": host ", host->host,
                                                     " is listed twice, first in line ",
                                                     first->second));
    }
    hosts.push_back(*std::move(host));
  }
  if (hosts.empty()) return absl::InvalidArgumentError(absl::StrCat(file, ": lists no host"));
  return hosts;
}

absl::StatusOr<std::vector<rendezvous::membership::HostSlots>> ReadHostfile(
    const std::string& file) {
  const absl::StatusOr<std::string> text = text::ReadGivenFile(file, kMostMib);
  if (!text.ok()) {
    const bool is_list = absl::IsNotFound(text.status()) && ParseHostList(file).ok();
    return absl::Status(text.status().code(),
                        absl::StrCat("can't read host file ", file, ": ", text.status().message(),
                                     is_list ? "; for a list of hosts use -H" : ""));
  }
  return ParseHostfile(*text, file);
}

}  // namespace hvd::launcher::discovery

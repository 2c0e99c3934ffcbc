#include "launcher/discovery/hostfile.h"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <map>
#include <sstream>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/status_macros.h"
#include "launcher/discovery/host_list.h"

namespace hvd::launcher::discovery {
namespace {

absl::StatusOr<rendezvous::membership::HostSlots> ParseLine(absl::string_view line) {
  const std::vector<absl::string_view> words =
      absl::StrSplit(line, absl::ByAnyChar(" \t\r\v\f"), absl::SkipEmpty());
  if (words.size() == 1) return ParseHost(words[0]);
  absl::string_view slots = words[1];
  if (words.size() > 2 || !absl::ConsumePrefix(&slots, "slots=")) {
    return absl::InvalidArgumentError(
        absl::StrCat(Quoted(absl::StrJoin(words, " ")), " is not of the form 'name slots=N'"));
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
  errno = 0;
  std::ifstream in(file, std::ios::binary);
  std::stringstream text;
  // A directory can be opened, and fails only when it is read. The parser refuses an empty file.
  if (!in || (in.peek() != EOF && !(text << in.rdbuf())) || in.bad()) {
    return absl::NotFoundError(absl::StrCat("can't read host file ", file, ": ",
                                            std::strerror(errno != 0 ? errno : EISDIR)));
  }
  return ParseHostfile(text.str(), file);
}

}  // namespace hvd::launcher::discovery

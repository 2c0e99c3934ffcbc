// The formats of workers' output: line prefixes, JSON, file names. Pure.
#ifndef BASE_CONSOLE_OUTPUT_FORMAT_H_
#define BASE_CONSOLE_OUTPUT_FORMAT_H_

#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace hvd::console {

// "[1]<stdout>:", with a time "Sat Nov 21 09:53:33 2026[1]<stdout>:" (local time).
std::string LinePrefix(int rank, bool is_stderr, std::optional<absl::Time> time);

// {"time":"2026-11-21T09:53:33.000000Z","rank":1,"host":"a","stream":"stdout","text":"..."} and a
// newline; `line` loses its own '\n', '\r' or "\r\n".
std::string OutputAsJson(absl::Time time, int rank, absl::string_view host, bool is_stderr,
                         absl::string_view line);

// Formats a message of the launcher: one such object for each non-empty line, with the stream
// "horovodrun" and null for rank and host.
std::string WordsAsJson(absl::Time time, absl::string_view words);

// "rank.07" in a job of 11 to 100 processes: zero-padded to the width of the highest rank.
std::string RankDirectory(int rank, int num_proc);

}  // namespace hvd::console

#endif  // BASE_CONSOLE_OUTPUT_FORMAT_H_

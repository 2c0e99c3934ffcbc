// How workers' output looks. Pure.
#ifndef LAUNCHER_CONSOLE_OUTPUT_FORMAT_H_
#define LAUNCHER_CONSOLE_OUTPUT_FORMAT_H_

#include <optional>
#include <string>

#include "absl/time/time.h"

namespace hvd {

// "[1]<stdout>:", with a time "Sat Nov 21 09:53:33 2026[1]<stdout>:" (local time).
std::string LinePrefix(int rank, bool is_stderr, std::optional<absl::Time> time);

// "rank.07" among 8 to 99 others: padded to the width of the highest rank.
std::string RankDirectory(int rank, int num_proc);

}  // namespace hvd

#endif  // LAUNCHER_CONSOLE_OUTPUT_FORMAT_H_

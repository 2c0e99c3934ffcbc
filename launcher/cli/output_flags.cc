#include "launcher/cli/output_flags.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "base/status_macros.h"

namespace hvd::launcher::cli {
namespace {

constexpr int64_t kMostMegabytes = 1 << 20;
// Each rotation renames all files.
constexpr int kMostRotatedFiles = 1000;
constexpr int kUsualRotatedFiles = 5;

// "0,4-7"
absl::StatusOr<RankRanges> ParseRanks(const std::string& list) {
  RankRanges ranges;
  for (const absl::string_view part : absl::StrSplit(list, ',')) {
    const std::vector<absl::string_view> ends = absl::StrSplit(part, '-');
    int first = 0, last = 0;
    if (ends.size() > 2 || !absl::SimpleAtoi(ends.front(), &first) ||
        !absl::SimpleAtoi(ends.back(), &last) || first < 0 || last < first) {
      return absl::InvalidArgumentError(
          absl::StrCat("--ranks-filter: '", part, "' is not a rank or a range, as 0 or 4-7"));
    }
    ranges.emplace_back(first, last);
  }
  return ranges;
}

}  // namespace

void OutputFlags::Declare(options::FlagTable& flags) {
  flags.Value("--output-filename", "DIR", "Also write to DIR/rank.N/stdout and stderr",
              [this](const std::string& text) {
                options_.directory = text;
                return absl::OkStatus();
              });
  flags.Value("--output-rotate-mb", "N", "Rotate files at N MB: stdout to stdout.1, ... (never)",
              [this](const std::string& text) {
                ASSIGN_OR_RETURN(
                    const int64_t megabytes,
                    options::ParseInteger("--output-rotate-mb", text, 1, kMostMegabytes));
                options_.rotate_bytes = megabytes << 20;
                return absl::OkStatus();
              });
  flags.Value("--output-rotate-files", "N", "Rotated files to keep of each (5)",
              [this](const std::string& text) {
                // Set apart from the number: 0 is a valid one.
                has_count_ = true;
                ASSIGN_OR_RETURN(
                    options_.rotated_files,
                    options::ParseInteger("--output-rotate-files", text, 0, kMostRotatedFiles));
                return absl::OkStatus();
              });
  flags.Value("--output-format", "FORMAT", "text, or json: one object per line",
              [this](const std::string& text) {
                options_.json = text == "json";
                if (options_.json || text == "text") return absl::OkStatus();
                return absl::InvalidArgumentError(
                    absl::StrCat("--output-format: '", text, "' is not text or json"));
              });
  flags.Value("--ranks-filter", "LIST", "Only show the output of these ranks: 0 or 0,4-7 (all)",
              [this](const std::string& text) {
                ASSIGN_OR_RETURN(options_.shown_ranks, ParseRanks(text));
                return absl::OkStatus();
              });
  flags.Flag("--prefix-timestamp,--prefix-output-with-timestamp", "Begin each line with the time",
             [this] { options_.timestamps = true; });
  // A spelling of Horovod's.
  flags.SingleDash("--prefix-timestamp", "-prefix-timestamp");
}

absl::StatusOr<OutputOptions> OutputFlags::Finish() const {
  OutputOptions options = options_;
  // Refused, not ignored: whoever sets a limit relies on it.
  if (options.rotate_bytes > 0 && options.directory.empty()) {
    return absl::InvalidArgumentError(
        "--output-rotate-mb is for the files of --output-filename; give that, too");
  }
  if (has_count_ && options.rotate_bytes == 0) {
    return absl::InvalidArgumentError(
        "--output-rotate-files needs --output-rotate-mb; give that, too");
  }
  if (!has_count_) options.rotated_files = kUsualRotatedFiles;
  return options;
}

}  // namespace hvd::launcher::cli

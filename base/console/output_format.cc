#include "base/console/output_format.h"

#include <ctime>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/text/json_object.h"

namespace hvd::console {

std::string LinePrefix(int rank, bool is_stderr, std::optional<absl::Time> time) {
  char text[64] = "";
  if (time.has_value()) {
    const std::time_t seconds = absl::ToTimeT(*time);
    std::tm local{};
    localtime_r(&seconds, &local);
    // The format of asctime, as Horovod prints it.
    std::strftime(text, sizeof text, "%a %b %e %H:%M:%S %Y", &local);
  }
  return absl::StrCat(text, "[", rank, is_stderr ? "]<stderr>:" : "]<stdout>:");
}

std::string OutputAsJson(absl::Time time, int rank, absl::string_view host, bool is_stderr,
                         absl::string_view line) {
  absl::ConsumeSuffix(&line, "\n");
  absl::ConsumeSuffix(&line, "\r");
  text::JsonObject object;
  object.AddTime("time", time)
      .AddNumber("rank", rank)
      .AddText("host", host)
      .AddText("stream", is_stderr ? "stderr" : "stdout")
      .AddText("text", line);
  return absl::StrCat(object.Text(), "\n");
}

std::string WordsAsJson(absl::Time time, absl::string_view words) {
  std::string result;
  for (absl::string_view line : absl::StrSplit(words, '\n', absl::SkipEmpty())) {
    text::JsonObject object;
    object.AddTime("time", time)
        .AddNull("rank")
        .AddNull("host")
        .AddText("stream", "horovodrun")
        .AddText("text", line);
    absl::StrAppend(&result, object.Text(), "\n");
  }
  return result;
}

std::string RankDirectory(int rank, int num_proc) {
  // Elastic jobs may get ranks with more digits than they began with.
  const size_t width = std::to_string(num_proc - 1).size();
  const std::string digits = std::to_string(rank);
  return absl::StrCat("rank.", std::string(width - std::min(width, digits.size()), '0'), digits);
}

}  // namespace hvd::console

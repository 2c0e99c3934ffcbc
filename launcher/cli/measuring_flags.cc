#include "launcher/cli/measuring_flags.h"

#include <cstdint>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace hvd::launcher::cli {
namespace {

constexpr int64_t kMostSamples = 1000000;

absl::Status CheckFile(const std::string& flag, const std::string& text) {
  if (!text.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(flag, ": needs the name of a file"));
}

absl::Status CheckPart(const std::string& flag, const std::string& text) {
  double value = 0;
  if (absl::SimpleAtod(text, &value) && value >= 0 && value <= 1) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(flag, ": '", text, "' is not a number from 0 to 1"));
}

}  // namespace

void MeasuringFlags::Declare(options::FlagTable& flags) {
  DeclareAutotune(flags);
  flags.Group("Timeline");
  flags.Value("--timeline-filename", "FILE",
              "Record what all ranks do, for Perfetto or chrome://tracing; rank 0 writes",
              [this](const std::string& text) {
                timeline_ = text;
                return CheckFile("--timeline-filename", text);
              });
  flags.Flag("--timeline-mark-cycles", "Also the rounds of the runtime's engine",
             [this] { mark_cycles_ = true; });
  flags.Harmless("--no-timeline-mark-cycles");
  flags.Opposites("--timeline-mark-cycles", "--no-timeline-mark-cycles");
}

void MeasuringFlags::DeclareAutotune(options::FlagTable& flags) {
  flags.Group("Autotune");
  flags.Flag("--autotune", "Look for the best fusion threshold and cycle time while training",
             [this] { autotune_ = true; });
  flags.Harmless("--no-autotune");
  flags.Opposites("--autotune", "--no-autotune");
  flags.Value("--autotune-log-file", "FILE", "Rank 0 writes there what was measured, as CSV",
              [this](const std::string& text) {
                autotune_values_.emplace_back("HOROVOD_AUTOTUNE_LOG", text);
                return CheckFile("--autotune-log-file", text);
              });
  auto number = [&](const std::string& name, const std::string& help, const std::string& variable,
                    int64_t least) {
    flags.Value(name, "N", help, [this, name, variable, least](const std::string& text) {
      ASSIGN_OR_RETURN(const int64_t value, options::ParseInteger(name, text, least, kMostSamples));
      autotune_values_.emplace_back(variable, absl::StrCat(value));
      return absl::OkStatus();
    });
  };
  number("--autotune-warmup-samples", "Samples that are not counted (3)",
         "HOROVOD_AUTOTUNE_WARMUP_SAMPLES", 0);
  number("--autotune-steps-per-sample", "Steps that are measured for one setting (10)",
         "HOROVOD_AUTOTUNE_STEPS_PER_SAMPLE", 1);
  number("--autotune-bayes-opt-max-samples", "Samples after which the best one stays (20)",
         "HOROVOD_AUTOTUNE_BAYES_OPT_MAX_SAMPLES", 1);
  const std::string noise = "--autotune-gaussian-process-noise";
  flags.Value(noise, "X", "Part of the differences that may be noise (0.8)",
              [this, noise](const std::string& text) {
                autotune_values_.emplace_back("HOROVOD_AUTOTUNE_GAUSSIAN_PROCESS_NOISE", text);
                return CheckPart(noise, text);
              });
}

std::vector<Assignment> MeasuringFlags::Finish() const {
  std::vector<Assignment> variables;
  if (autotune_) {
    variables = autotune_values_;
    variables.emplace_back("HOROVOD_AUTOTUNE", "1");
  }
  if (!timeline_.empty()) {
    variables.emplace_back("HOROVOD_TIMELINE", timeline_);
    if (mark_cycles_) variables.emplace_back("HOROVOD_TIMELINE_MARK_CYCLES", "1");
  }
  return variables;
}

}  // namespace hvd::launcher::cli

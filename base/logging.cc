#include "base/logging.h"

#include "spdlog/sinks/stdout_sinks.h"

namespace hvd {
namespace {

spdlog::level::level_enum LevelOf(absl::string_view level) {
  if (level == "fatal") return spdlog::level::critical;
  return spdlog::level::from_str(std::string(level));
}

}  // namespace

std::shared_ptr<spdlog::logger> MakeLogger(const std::string& name, absl::string_view level,
                                           bool hide_time) {
  auto logger =
      std::make_shared<spdlog::logger>(name, std::make_shared<spdlog::sinks::stderr_sink_mt>());
  logger->set_level(LevelOf(level));
  // Debug logs are used to measure durations, so they have microseconds.
  const std::string fraction = logger->should_log(spdlog::level::debug) ? "%f" : "%e";
  logger->set_pattern(hide_time ? "%n %l: %v" : "%Y-%m-%d %H:%M:%S." + fraction + " %n %l: %v");
  logger->flush_on(spdlog::level::trace);
  return logger;
}

}  // namespace hvd

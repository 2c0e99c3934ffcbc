// Parsers of the settings' values, one for each kind of value.
#ifndef BASE_SETTINGS_SETTING_READERS_H_
#define BASE_SETTINGS_SETTING_READERS_H_

#include <cstddef>
#include <functional>
#include <string>

#include "absl/time/time.h"
#include "base/settings/runtime_env.h"

namespace hvd::settings {

// The requirement that a value violates, as the end of a sentence; empty if the value is valid.
using Problem = std::string;
// Parses `text` and sets a field of `env`.
using Read = std::function<Problem(const std::string& text, RuntimeEnv* env)>;

// A field of RuntimeEnv or of one of its parts. Implicit, so that a table of settings names fields.
template <typename T>
class Field {
 public:
  // NOLINTBEGIN(google-explicit-constructor)
  Field(T RuntimeEnv::*field) : in_([field](RuntimeEnv& env) -> T& { return env.*field; }) {}
  Field(T EngineEnv::*field) : in_([field](RuntimeEnv& env) -> T& { return env.engine.*field; }) {}
  Field(T AutotuneEnv::*field)
      : in_([field](RuntimeEnv& env) -> T& { return env.autotune.*field; }) {}
  // NOLINTEND(google-explicit-constructor)

  T& In(RuntimeEnv& env) const { return in_(env); }

 private:
  std::function<T&(RuntimeEnv&)> in_;
};

// Parsers for fields with no constraint but their type: a whole number, a number of seconds, 0 or
// 1, any text.
Read Count(Field<size_t> field);
Read CountFromOne(Field<size_t> field);
Read Seconds(Field<absl::Duration> field);
Read Switch(Field<bool> field);
Read Text(Field<std::string> field);

// Parsers for settings with special rules.
Problem ReadFusionThreshold(const std::string& text, RuntimeEnv* env);
Problem ReadCycleTime(const std::string& text, RuntimeEnv* env);
Problem ReadTorus(const std::string& text, RuntimeEnv* env);
Problem ReadNoise(const std::string& text, RuntimeEnv* env);
Problem ReadNoStallCheck(const std::string& text, RuntimeEnv* env);
Problem ReadGlooTimeout(const std::string& text, RuntimeEnv* env);
Problem ReadAgentTimeout(const std::string& text, RuntimeEnv* env);
Problem ReadCores(const std::string& text, RuntimeEnv* env);
Problem ReadLogLevel(const std::string& text, RuntimeEnv* env);
Problem ReadCpuOperations(const std::string& text, RuntimeEnv* env);
Problem ReadGpuOperations(const std::string& text, RuntimeEnv* env);
Problem ReadOnCorruption(const std::string& text, RuntimeEnv* env);
Problem ReadSharedGpus(const std::string& text, RuntimeEnv* env);
Problem ReadWorkerId(const std::string& text, RuntimeEnv* env);

}  // namespace hvd::settings

#endif  // BASE_SETTINGS_SETTING_READERS_H_

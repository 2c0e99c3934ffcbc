// Readers of the process's environment.
#ifndef BASE_ENV_H_
#define BASE_ENV_H_

#include <map>
#include <string>
#include <vector>

namespace hvd {

using Environment = std::map<std::string, std::string>;

// Returns a copy of the process's environment. Works in shared libraries too: in a library that
// was loaded with RTLD_DEEPBIND into a program with a copy relocation of `environ`, `environ` is a
// separate, empty variable, so the program's is looked up. Not safe while another thread changes
// it.
Environment ReadEnvironment();

// Returns those variables of `names` that are set. Not safe while another thread changes the
// variables.
Environment ReadVariables(const std::vector<std::string>& names);

}  // namespace hvd

#endif  // BASE_ENV_H_

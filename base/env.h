// The process's environment, as a copy.
#ifndef BASE_ENV_H_
#define BASE_ENV_H_

#include <map>
#include <string>
#include <vector>

namespace hvd {

using Environment = std::map<std::string, std::string>;

// A copy of the process's environment. Not safe while another thread changes it.
Environment ReadEnvironment();

// Those of these variables that are set. For libraries too: it asks by name, since `environ` itself
// is another, empty variable to a library that was loaded with RTLD_DEEPBIND into a program that
// holds a copy of it. Not safe while another thread changes them.
Environment ReadVariables(const std::vector<std::string>& names);

}  // namespace hvd

#endif  // BASE_ENV_H_

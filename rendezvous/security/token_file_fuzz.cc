// Fuzz target: token files.
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <string>

#include "absl/strings/match.h"
#include "rendezvous/security/token_file.h"
#include "tests/support/fuzzing.h"

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using hvd::Require;
  static const std::string path = "/dev/shm/token_file_fuzz_" + std::to_string(getpid());
  std::ofstream(path, std::ios::binary | std::ios::trunc) << hvd::AsText(data, size);
  chmod(path.c_str(), 0600);
  const auto credentials = hvd::rendezvous::security::ReadTokenFile(path);
  unlink(path.c_str());
  if (credentials.ok()) {
    Require(!credentials->token().empty(), "credentials have a token");
  } else {
    hvd::RequireOneLine(credentials.status());
    Require(absl::StrContains(credentials.status().message(), path), "an error names the file");
  }
  return 0;
}

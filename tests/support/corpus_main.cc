// The main function of a fuzz target's unit test: gives each file of a corpus to the target.
//
//   NAME_fuzz_test FOLDER
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

#include "tests/support/fuzzing.h"

namespace {

void Run(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  const std::vector<char> bytes(std::istreambuf_iterator<char>(file), {});
  // The name of the input that ends the process is the last one.
  std::printf("%s\n", path.c_str());
  std::fflush(stdout);
  LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size());
}

}  // namespace

int main(int argc, char** argv) {
  int inputs = 0;
  std::error_code error;
  if (argc == 2) {
    for (const auto& entry : std::filesystem::directory_iterator(argv[1], error)) {
      Run(entry.path());
      ++inputs;
    }
  }
  if (inputs > 0) return 0;
  std::fprintf(stderr, "usage: %s FOLDER, which contains a corpus\n", argv[0]);
  return 2;
}

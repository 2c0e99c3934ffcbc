// Fixtures for tests of programs that join a daemon which does not answer: a port, a token file,
// and the program with its pipes.
#ifndef AGENT_TESTING_JOINING_PROGRAM_H_
#define AGENT_TESTING_JOINING_PROGRAM_H_

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/fd.h"
#include "base/os/process.h"
#include "gtest/gtest.h"
#include "rendezvous/security/job_credentials.h"
#include "rendezvous/security/token_file.h"

namespace hvd::agent {

// A socket bound to 127.0.0.1. Once it listens, as many connections as its backlog and one succeed;
// they are never accepted.
class BoundSocket {
 public:
  explicit BoundSocket(std::optional<int> backlog = std::nullopt)
      : fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in name = {};
    name.sin_family = AF_INET;
    name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(name);
    EXPECT_EQ(bind(fd_.get(), reinterpret_cast<sockaddr*>(&name), size), 0);
    EXPECT_EQ(getsockname(fd_.get(), reinterpret_cast<sockaddr*>(&name), &size), 0);
    address_ = absl::StrCat("127.0.0.1:", ntohs(name.sin_port));
    if (backlog.has_value()) Listen(*backlog);
  }
  void Listen(int backlog) const { EXPECT_EQ(listen(fd_.get(), backlog), 0); }
  const std::string& address() const { return address_; }

 private:
  Fd fd_;
  std::string address_;
};

// A token file with credentials that nobody else has. The destructor removes it.
class TokenFile {
 public:
  // `name`: unique among the tests.
  explicit TokenFile(const std::string& name)
      : credentials_((*rendezvous::security::JobAuthority::Create("job"))
                         ->IssueForHost(rendezvous::security::kAnyHost)
                         .value()),
        path_(testing::TempDir() + "/" + name),
        file_(rendezvous::security::TokenFile::Write(path_, credentials_).value()) {}

  const std::string& path() const { return path_; }
  const std::string& token() const { return credentials_.token; }

 private:
  const rendezvous::security::PeerCredentials credentials_;
  const std::string path_;
  const std::unique_ptr<rendezvous::security::TokenFile> file_;
};

// A program, and the test's ends of its stdin, stdout and stderr.
struct PipedProgram {
  os::Process process;
  Fd in, out, err;
};

// Starts an agent's program with `argv`, the options required to join, then `more`.
inline PipedProgram SpawnJoining(const std::string& file, std::vector<std::string> argv,
                                 const std::string& daemon, const TokenFile& token,
                                 const std::vector<std::string>& more) {
  Pipe in = MakePipe().value();
  Pipe out = MakePipe().value();
  Pipe err = MakePipe().value();
  argv.insert(argv.end(), {"--join", daemon, "--token-file", token.path()});
  argv.insert(argv.end(), more.begin(), more.end());
  os::SpawnOptions options;
  options.file = file;
  options.argv = std::move(argv);
  options.stdin_fd = in.read.get();
  options.stdout_fd = out.write.get();
  options.stderr_fd = err.write.get();
  return {os::Process::Spawn(options).value(), std::move(in.write), std::move(out.read),
          std::move(err.read)};
}

// Reads a line with its line end; less at the end of the stream.
inline std::string ReadLine(const Fd& fd) {
  std::string line;
  for (char byte = 0; byte != '\n' && ReadSome(fd.get(), &byte, 1).bytes == 1;) line += byte;
  return line;
}

}  // namespace hvd::agent

#endif  // AGENT_TESTING_JOINING_PROGRAM_H_

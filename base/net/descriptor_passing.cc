#include "base/net/descriptor_passing.h"

#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"

namespace hvd::net {
namespace {

constexpr size_t kControlBytes = CMSG_SPACE(kMostPassedDescriptors * sizeof(int));

}  // namespace

absl::Status SendWithDescriptors(int socket, absl::string_view bytes,
                                 const std::vector<int>& descriptors) {
  if (descriptors.size() > kMostPassedDescriptors) {
    return absl::InvalidArgumentError(
        absl::StrCat(descriptors.size(), " descriptors are too many for one message"));
  }
  iovec part = {const_cast<char*>(bytes.data()), bytes.size()};
  msghdr message = {};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  // CMSG_FIRSTHDR gives a pointer to a header in the buffer, which needs its alignment.
  alignas(cmsghdr) char control[kControlBytes] = {};
  const size_t passed = descriptors.size() * sizeof(int);
  if (passed > 0) {
    message.msg_control = control;
    message.msg_controllen = CMSG_SPACE(passed);
    cmsghdr* const header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(passed);
    memcpy(CMSG_DATA(header), descriptors.data(), passed);
  }
  const ssize_t sent = TEMP_FAILURE_RETRY(sendmsg(socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT));
  // A message that was sent only partly counts as an error: sending the rest could block.
  if (sent == static_cast<ssize_t>(bytes.size())) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat("sendmsg: ", strerror(sent < 0 ? errno : EAGAIN)));
}

absl::StatusOr<size_t> ReceiveWithDescriptors(int socket, char* buffer, size_t size,
                                              std::vector<Fd>& descriptors) {
  iovec part = {buffer, size};
  alignas(cmsghdr) char control[kControlBytes];
  msghdr message = {};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof(control);
  const ssize_t got =
      TEMP_FAILURE_RETRY(recvmsg(socket, &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT));
  if (got < 0) return absl::UnavailableError(absl::StrCat("recvmsg: ", strerror(errno)));
  const cmsghdr* const header = CMSG_FIRSTHDR(&message);
  if (header == nullptr || header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) {
    return static_cast<size_t>(got);
  }
  // The descriptors are open in this process already, so every one is taken, or it would leak. The
  // kernel opens none that does not fit into `control`.
  for (size_t at = 0; CMSG_LEN(at + sizeof(int)) <= header->cmsg_len; at += sizeof(int)) {
    int fd = -1;
    memcpy(&fd, CMSG_DATA(header) + at, sizeof(fd));
    descriptors.emplace_back(fd);
  }
  return static_cast<size_t>(got);
}

}  // namespace hvd::net

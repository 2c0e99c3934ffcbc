#include "collectives/messages/host_memory.h"

#include <sys/wait.h>
#include <unistd.h>

#include <string>

#include "gtest/gtest.h"

namespace hvd::collectives::messages {
namespace {

constexpr uint64_t kCookie = 4711;

MemoryCard OwnCard() {
  MemoryCard card;
  card.FillIn(&kCookie);
  return card;
}

TEST(HostMemoryTest, Read_CopiesWhatIsMappedThere) {
  const MemoryCard card = OwnCard();
  HostMemory memory(card);
  EXPECT_TRUE(memory.Available());
  const std::string there(100000, 't');
  std::string here(there.size(), 'h');
  EXPECT_TRUE(memory.Read(reinterpret_cast<uint64_t>(there.data()), &here[0], here.size()));
  EXPECT_EQ(here, there);
  EXPECT_FALSE(memory.Read(8, &here[0], here.size()));
}

TEST(HostMemoryTest, OtherProcessOfThatNumber_IsNotRead) {
  MemoryCard other = OwnCard();
  other.cookie = kCookie + 1;
  EXPECT_FALSE(HostMemory(other).Available());
}

TEST(HostMemoryTest, ProcessThatHasEnded_CantBeRead) {
  MemoryCard card = OwnCard();
  const pid_t child = fork();
  if (child == 0) _exit(0);
  waitpid(child, nullptr, 0);
  card.process = child;
  EXPECT_FALSE(HostMemory(card).Available());
}

}  // namespace
}  // namespace hvd::collectives::messages

#include "worker_runtime/api/registration_rounds.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/net/frames.h"
#include "base/status_macros.h"

namespace hvd::worker_runtime::api {
namespace {

constexpr char kName[] = "horovod.process_sets";

// Splits a concatenation of `count` frames.
absl::StatusOr<std::vector<std::string>> SplitFrames(absl::string_view bytes, size_t count) {
  net::FrameDecoder decoder(net::kMaxFrameBytes);
  decoder.Append(bytes);
  std::vector<std::string> texts;
  while (texts.size() < count) {
    ASSIGN_OR_RETURN(std::optional<std::string> text, decoder.Next());
    if (!text.has_value()) break;
    texts.push_back(*std::move(text));
  }
  // Fewer or more frames than ranks would shift every later text to the wrong rank.
  if (texts.size() == count && decoder.empty()) return texts;
  return absl::InternalError("the registration of a process set has received an invalid message");
}

}  // namespace

absl::StatusOr<std::vector<std::string>> GatherTexts(engine::Engine& world, int world_size,
                                                     absl::string_view text) {
  const std::string frame = net::EncodeFrame(text);
  engine::TensorRequest request;
  request.name = kName;
  request.op = negotiation::OpKind::kAllGather;
  request.type = collectives::DataType::kUint8;
  // Frames of different lengths: an allgather concatenates them, and each has its length in front.
  request.shape = {static_cast<int64_t>(frame.size())};
  request.input = frame.data();
  ASSIGN_OR_RETURN(const engine::Engine::Handle handle, world.Submit({std::move(request)}));
  RETURN_IF_ERROR(world.Wait(handle));
  const engine::TensorResult& result = handle->results.front();
  const absl::string_view bytes(static_cast<const char*>(result.data),
                                static_cast<size_t>(result.shape.front()));
  return SplitFrames(bytes, static_cast<size_t>(world_size));
}

// A rank's message in one round: a key and its value, or the status with which it has finished.
struct RegistrationRounds::Word {
  enum Kind { kKey = 0, kFinished = 1 };
  Kind kind = kKey;
  std::string key;    // kFinished: the status code
  std::string value;  // kFinished: the status message

  std::string Encode() const {
    return absl::StrCat(net::EncodeFrame(absl::StrCat(static_cast<int>(kind))),
                        net::EncodeFrame(key), net::EncodeFrame(value));
  }

  static absl::StatusOr<Word> Decode(const std::string& bytes) {
    ASSIGN_OR_RETURN(std::vector<std::string> parts, SplitFrames(bytes, 3));
    int kind;
    if (!absl::SimpleAtoi(parts[0], &kind) || kind < kKey || kind > kFinished) {
      return absl::InternalError(
          "the registration of a process set has received a message of unknown kind");
    }
    return Word{static_cast<Kind>(kind), std::move(parts[1]), std::move(parts[2])};
  }
};

absl::StatusOr<std::vector<RegistrationRounds::Word>> RegistrationRounds::Exchange(
    const Word& own) {
  ASSIGN_OR_RETURN(const std::vector<std::string> texts,
                   GatherTexts(world_, world_size_, own.Encode()));
  std::vector<Word> words;
  // All ranks of the world take part in the round, but only the words of the set's members count.
  for (int member : members_) {
    ASSIGN_OR_RETURN(Word word, Word::Decode(texts[member]));
    words.push_back(std::move(word));
  }
  return words;
}

absl::Status RegistrationRounds::FirstError(const std::vector<Word>& words) const {
  for (size_t i = 0; i < words.size(); ++i) {
    int code;
    if (words[i].kind != Word::kFinished || !absl::SimpleAtoi(words[i].key, &code) || code == 0) {
      continue;
    }
    // The first member's error in rank order, so that all ranks of the world return the same one.
    return absl::Status(static_cast<absl::StatusCode>(code),
                        absl::StrCat("rank ", members_[i], " can't connect to the other ranks of ",
                                     "a process set: ", words[i].value));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<std::string>> RegistrationRounds::AllGather(absl::string_view key,
                                                                       absl::string_view value,
                                                                       absl::Duration) {
  ASSIGN_OR_RETURN(std::vector<Word> words,
                   Exchange({Word::kKey, std::string(key), std::string(value)}));
  RETURN_IF_ERROR(FirstError(words));
  std::vector<std::string> values;
  for (size_t i = 0; i < words.size(); ++i) {
    if (words[i].kind != Word::kKey || words[i].key != key) {
      return absl::InternalError(absl::StrCat("rank ", members_[i], " is at another step than '",
                                              key, "' of the registration of a process set"));
    }
    values.push_back(std::move(words[i].value));
  }
  return values;
}

absl::Status RegistrationRounds::Finish(const absl::Status& own) {
  // Every round is an allgather of the whole world, so a rank that has finished must go on calling
  // until all members have; the others would wait for it. All ranks see the same messages and so
  // stop after the same round.
  const Word word{Word::kFinished, absl::StrCat(static_cast<int>(own.code())),
                  std::string(own.message())};
  while (true) {
    ASSIGN_OR_RETURN(const std::vector<Word> words, Exchange(word));
    const bool all_finished = std::all_of(
        words.begin(), words.end(), [](const Word& said) { return said.kind == Word::kFinished; });
    if (all_finished) return FirstError(words);
  }
}

}  // namespace hvd::worker_runtime::api

// What encoders made of prompts and pictures, kept in host memory for requests that bring the same
// ones again: a second seed needs no text encoder. Not thread-safe.
#pragma once

#include <cstdint>
#include <list>
#include <string>
#include <vector>

#include "pipeline/families/text_encoders.h"
#include "weights/adapters/adapter_file.h"

namespace braid {

// Everything that a result depends on. Adapters are compared, and kept alive, by their files.
struct EncodedKey {
  std::string what;
  std::vector<AppliedAdapter> adapters = {};

  bool operator==(const EncodedKey&) const = default;
};
// `adapters`: those that change a text encoder.
EncodedKey key_of_prompt(const Prompt& prompt, int max_sequence_length,
                         std::vector<AppliedAdapter> adapters);
// `how` names the encoder and its settings.
EncodedKey key_of_picture(const Tensor& picture_13HW, const std::string& how);

struct EncodedResult {
  std::vector<Tensor> tensors;             // some may be undefined
  std::vector<std::string> warnings = {};  // given while it was made
};

struct EncodedUse {
  std::int64_t found = 0, made = 0;  // results
  std::int64_t bytes = 0;            // kept now
};

class EncodedCache {
 public:
  // 0: keeps nothing.
  explicit EncodedCache(std::int64_t most_bytes) : most_bytes_(most_bytes) {}

  bool is_on() const { return most_bytes_ > 0; }
  // Null if there is none; valid until the next call of keep(). A result found is the last to go.
  const EncodedResult* find(const EncodedKey& key);
  // Copies the tensors to the host. Results that were not asked for longest make room; one larger
  // than everything is not kept.
  void keep(EncodedKey key, const EncodedResult& result);
  const EncodedUse& use() const { return use_; }

 private:
  struct Kept {
    EncodedKey key;
    EncodedResult result;
    std::int64_t bytes;
  };
  std::int64_t most_bytes_;
  std::list<Kept> kept_;  // the latest first
  EncodedUse use_;
};

}  // namespace braid

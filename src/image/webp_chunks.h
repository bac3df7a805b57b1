// The chunks of a WebP: a name, a size, that many bytes, and a padding byte if that is odd.
#pragma once

#include <algorithm>
#include <optional>
#include <string_view>

#include "base/byte_order.h"

namespace braid {

struct WebpChunk {
  std::string_view name, bytes;
};

// Walks a file's chunks, up to the first that is cut or the end that the file's own size gives.
class WebpChunks {
 public:
  explicit WebpChunks(std::string_view webp) {
    if (webp.size() < kRiffHeader) return;
    const auto size = std::size_t(little_endian(webp.data() + 4, 4));
    rest_ = webp.substr(0, kChunkHeader + size).substr(std::min(kRiffHeader, kChunkHeader + size));
  }

  std::optional<WebpChunk> next() {
    if (rest_.size() < kChunkHeader) return {};
    const auto size = std::size_t(little_endian(rest_.data() + 4, 4));
    if (size > rest_.size() - kChunkHeader) return {};
    const WebpChunk chunk{rest_.substr(0, 4), rest_.substr(kChunkHeader, size)};
    rest_.remove_prefix(std::min(rest_.size(), kChunkHeader + size + size % 2));
    return chunk;
  }

 private:
  static constexpr std::size_t kRiffHeader = 12, kChunkHeader = 8;
  std::string_view rest_;
};

}  // namespace braid

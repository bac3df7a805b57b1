// The tokenizers that come with Braid (models/published). CLIP's ids are those of OpenAI's own
// tokenizer, in open_clip 3.3.0; T5's and Qwen's those of transformers 5.23.0.
#include <gtest/gtest.h>

#include "text/tokenizer_files.h"

namespace braid::published_test {

using Ids = std::vector<std::int64_t>;

Ids ids_of(const char* tokenizer, const char* text) {
  const auto folder =
      std::filesystem::path(BRAID_SOURCE_DIR) / "models/published/tokenizers" / tokenizer;
  const auto encoding = load_tokenizer(folder)->encode(text, 77);
  return {encoding.ids.begin(), encoding.ids.begin() + encoding.length};
}

TEST(PublishedTokenizers, OfClipAreOpenAis) {
  EXPECT_EQ(ids_of("clip", "a photo of a cat"), (Ids{49406, 320, 1125, 539, 320, 2368, 49407}));
  EXPECT_EQ(ids_of("clip", "Zwei Füchse café — 50% naïve?!"),
            (Ids{49406, 89, 20952, 69, 6522, 540, 611, 15304, 2005, 276, 271, 260, 1097, 35689, 563,
                 2835, 49407}));
  EXPECT_EQ(ids_of("clip", "東京タワー 🦊"),
            (Ids{49406, 48338, 21078, 105, 34941, 2429, 107, 30391, 6040, 488, 49407}));
}

TEST(PublishedTokenizers, OfT5) {
  EXPECT_EQ(ids_of("t5", "a photo of a cat"), (Ids{3, 9, 1202, 13, 3, 9, 1712, 1}));
  EXPECT_EQ(ids_of("t5", "Zwei Füchse café — 50% naïve?!"),
            (Ids{11280, 377, 1272, 524, 7, 15, 11949, 3, 318, 5743, 3, 29, 9, 2, 162, 10769, 1}));
}

TEST(PublishedTokenizers, OfQwen3) {
  EXPECT_EQ(ids_of("qwen3", "a photo of a cat"), (Ids{64, 6548, 315, 264, 8251}));
  EXPECT_EQ(ids_of("qwen3", "東京タワー 🦊"),
            (Ids{102356, 46553, 46207, 125980, 11162, 99, 232}));
  EXPECT_EQ(ids_of("qwen3", "<|im_start|>user\nhi<|im_end|>"),
            (Ids{151644, 872, 198, 6023, 151645}));
}

}  // namespace braid::published_test

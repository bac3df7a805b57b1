// Options out of range are refused by name before anything is opened.
#include "pipeline/deployment/checked_options.h"

#include <gmock/gmock.h>

#include <functional>

#include "message_of.h"
#include "pipeline/deployment/deployment.h"

namespace braid::checked_options_test {

using testing::ElementsAre;
using testing::HasSubstr;

struct OutOfRange {
  const char* field;
  std::function<void(PipelineOptions&, int number)> set;
  int last;  // number that there is
};

#define BRAID_CHOICE(field, last)                                                                \
  {                                                                                              \
#field, [](PipelineOptions & o, int number) { o.field = decltype(o.field)(number); },        \
                                                                                       int(last) \
  }
const std::vector<OutOfRange> kChoices = {
    BRAID_CHOICE(adapter_mode, AdapterMode::kUnmerged),
    BRAID_CHOICE(dtype, Dtype::kFloat16),
    BRAID_CHOICE(graphs, Graphs::kOff),
    BRAID_CHOICE(text_stream, TextStream::kOwn),
    BRAID_CHOICE(cache.mode, CacheMode::kAccumulated),
    BRAID_CHOICE(layout.fit, Fit::kAuto),
    BRAID_CHOICE(layout.shares_fit, Fit::kAuto),
    BRAID_CHOICE(layout.modulation, SharedModulation::kNo),
    BRAID_CHOICE(layout.text, TextRanks::kShared),
    BRAID_CHOICE(layout.decode, DecodeRanks::kAll),
    BRAID_CHOICE(layout.ring_form, RingForm::kGather),
    BRAID_CHOICE(layout.collectives, Collectives::kNative),
    BRAID_CHOICE(layout.ranks, Ranks::kProcesses),
    BRAID_CHOICE(memory.quantize, Quantize::kFloat8),
    BRAID_CHOICE(memory.quantize_text, Quantize::kFloat8),
    BRAID_CHOICE(memory.recorded_step, RecordedStep::kDropped),
    BRAID_CHOICE(memory.fit, Fit::kAuto),
    BRAID_CHOICE(memory.offload.transformer, OffloadMode::kSequential),
    BRAID_CHOICE(memory.offload.text, OffloadMode::kSequential),
    BRAID_CHOICE(memory.offload.vae, OffloadMode::kSequential),
    BRAID_CHOICE(memory.offload.residency, Residency::kStrided),
    BRAID_CHOICE(memory.offload.pin, Pin::kNever),
    BRAID_CHOICE(memory.offload.reads, DiskReads::kMapped),
};
#undef BRAID_CHOICE

TEST(Options, RefuseNumbersThatAreNoChoice) {
  for (const auto& choice : kChoices) {
    for (const int number : {-1, choice.last + 1, 99}) {
      PipelineOptions options;
      choice.set(options, number);
      EXPECT_EQ(message_of([&] { check_options(options); }),
                text_of("there is no such ", choice.field, " as number ", number));
      EXPECT_NE(message_of([&] { deploy(options); }), "") << choice.field;
    }
    for (int number = 0; number <= choice.last; ++number) {
      PipelineOptions options;
      choice.set(options, number);
      EXPECT_NO_THROW(check_options(options)) << choice.field << " " << number;
    }
  }
}

TEST(Options, TakeAsManyThreadsAsTheProgram) {
  EXPECT_NO_THROW(check_options({.model = "", .threads = 1024}));
  for (const int threads : {-1, 1025})
    EXPECT_THAT(message_of([&] { check_options({.model = "", .threads = threads}); }),
                HasSubstr("number of threads should lie between 0 and 1024"));
}

TEST(Options, WarnOfAPublishedFolderThatIsNotThere) {
  const auto demo = std::filesystem::path(BRAID_SOURCE_DIR) / "models/demo";
  std::vector<std::string> warnings;
  deploy({.model = demo, .published = "/nowhere"},
         [&](const std::string& warning) { warnings.push_back(warning); });
  EXPECT_THAT(warnings, ElementsAre("`published` /nowhere is not read: there is no such folder"));
}

}  // namespace braid::checked_options_test

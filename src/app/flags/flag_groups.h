// Flags that commands share, by concern: each function adds the flags of one concern.
#pragma once

#include "app/flags/flag_reader.h"
#include "app/flags/flag_values.h"
#include "app/flags/flags.h"
#include "braid/braid.h"

namespace braid {

// Which model computes, and on what.
void add_model_flags(FlagReader& read, PipelineOptions& options);
void add_comfy_flag(FlagReader& read, PipelineOptions& options);
void add_controlnet_flag(FlagReader& read, std::vector<std::filesystem::path>& folders);
void add_component_flags(FlagReader& read, PipelineOptions& options);  // all but --model
void add_redux_flag(FlagReader& read, PipelineOptions& options);
void add_lora_flag(FlagReader& read, std::vector<Adapter>& adapters);
void add_adapter_flags(FlagReader& read, PipelineOptions& options);  // that and --adapter-mode
void add_machine_flags(FlagReader& read, PipelineOptions& options);
// --synthetic and its block counts: random weights in real shapes instead of files.
void add_synthetic_flags(FlagReader& read, std::string& synthetic, std::vector<int>& blocks);
// Throws InputError if the flags in the command line count blocks in two ways.
void check_synthetic_flags(const std::set<std::string>& given);

// --devices, one device per rank, --graph and --text-stream.
void add_devices_flag(FlagReader& read, PipelineOptions& options);
void add_graph_flag(FlagReader& read, PipelineOptions& options);
void add_text_stream_flag(FlagReader& read, PipelineOptions& options);

// How ranks share one picture: the transformer's work, and that of the parts around it.
void add_layout_flags(FlagReader& read, Layout& layout);
void add_text_and_vae_layout_flags(FlagReader& read, Layout& layout);
// --shares of devices that need not be there.
void add_planned_shares_flag(FlagReader& read, AxisShares& shares);
// --layout auto.
void add_auto_layout_flag(FlagReader& read, Layout& layout);
// Throws InputError if degrees are given as well.
void check_auto_layout(const Layout& layout);

// Caches that skip most of a step.
void add_cache_flags(FlagReader& read, CacheOptions& cache);
std::string words_of(const CacheOptions& cache);  // "first-block:0.1"

// Help of --max-sequence-length, and of it where nothing is drawn: FLUX.3 reads far more than
// prompts have.
std::string text_tokens_help();
std::string planned_text_tokens_help();

// True classifier-free guidance.
void add_guidance_flags(FlagReader& read, Request& request);

// The sampler and the noise levels.
void add_sampling_flags(FlagReader& read, Sampling& sampling);

// Pictures that a request brings.
void add_input_picture_flags(FlagReader& read, PictureFlags& flags);
// Those of them that matter where pictures only count as tokens, by number and size.
void add_reference_flags(FlagReader& read, PictureFlags& flags, const std::string& group);
// --layers. `help` begins its help, as in "Layers that a picture is taken apart into".
void add_layers_flag(FlagReader& read, std::optional<int>& layers, const std::string& group,
                     const std::string& help);
// Throws InputError if there are too few or too many pictures, or flags of pictures.
void check_pictures_in(const PictureFlags& flags, const PipelineOptions& options);

// Whether --quantize auto may leave the form of weights to a memory budget.
enum class Bits { kGiven, kMayBeLeftOpen };
// How weights are kept, and which of these settings the line states.
void add_memory_flags(FlagReader& read, Memory& memory, StatedMemory& stated, Bits bits);
// --preset. `otherwise`: what the command does without it, for its help.
void add_preset_flag(FlagReader& read, Memory& memory, const std::string& otherwise);
// --memory and --host-memory, for commands that choose the other memory flags by them.
void add_budget_flags(FlagReader& read, Memory& memory);
// Throws InputError if something is left to a budget and there is none.
void check_budget(const Memory& memory);
// The memory flags that say what is quantized.
void add_quantize_flags(FlagReader& read, Memory& memory, StatedMemory& stated, Bits bits);

// Spellings of how ranks share modulations, text encoders, decoding, rings and sums.
extern const Choices<SharedModulation> kModulations;
extern const Choices<TextRanks> kTextRanks;
extern const Choices<DecodeRanks> kDecodeRanks;
extern const Choices<RingForm> kRingForms;
extern const Choices<Collectives> kCollectives;

// `braid verify`.
extern const char* const kVerifyExamples;
void add_verify_flags(FlagReader& read, VerifyFlags& flags);

// `braid serve`.
extern const char* const kServeExamples;
void add_serve_flags(FlagReader& read, ServeFlags& flags);
// Throws InputError if others can reach the server and it requires no key, or for two addresses.
// `given` are the flags in the command line.
void check_together(const ServeFlags& flags, const std::set<std::string>& given);

// --enhancer and what goes with it. `effect` begins the help, as in "Have prompts rewritten by ".
void add_enhancer_flags(FlagReader& read, EnhancerFlags& flags, const std::string& effect);
// Throws InputError for flags without the first, and in builds without a web client.
void check_together(const EnhancerFlags& flags);

// When pictures are decoded in tiles.
void add_decoder_flags(FlagReader& read, VaeTiling& tiling);

// `braid convert`.
extern const char* const kConvertExamples;
void add_convert_flags(FlagReader& read, ConvertFlags& flags);
// Throws InputError unless there is something to convert and a place of a fitting name for it.
void check_together(const ConvertFlags& flags);

// `braid pull` and `braid models`.
extern const char* const kPullExamples;
void add_pull_flags(FlagReader& read, PullFlags& flags);
void add_models_flags(FlagReader& read, ModelsFlags& flags);
// Throws InputError unless a repository is named.
void check_together(const PullFlags& flags);

}  // namespace braid

#include "pipeline/same_run.h"

#include <c10/core/ScalarType.h>

#include <algorithm>
#include <sstream>

#include "base/error.h"
#include "comm/texts.h"
#include "pipeline/files/model_files.h"

namespace braid {
namespace {

constexpr std::size_t kSample = 64;  // bytes from the middle of each tensor

// FNV-1a: guards against mistakes, not against malice.
class Hash {
 public:
  void add(const void* data, std::size_t size) {
    const auto* const bytes = static_cast<const unsigned char*>(data);
    for (std::size_t i = 0; i < size; ++i) hash_ = (hash_ ^ bytes[i]) * 0x100000001b3;
  }
  void add(const std::string& text) { add(text.c_str(), text.size() + 1); }
  std::string words() const {
    std::ostringstream out;
    out << "#" << std::hex << hash_;
    return out.str();
  }

 private:
  std::uint64_t hash_ = 0xcbf29ce484222325;
};

// One line for each thing: its name, then its value.
class Facts {
 public:
  template <class... Values>
  void add(const std::string& name, const Values&... values) {
    auto line = name + '\t' + text_of(values...);
    std::ranges::replace(line, '\n', ' ');
    lines_ += line + '\n';
  }
  template <class Value>
  void add_if(const std::string& name, const std::optional<Value>& value) {
    if (value)
      add(name, *value);
    else
      add(name, "the model's");
  }
  void add_list(const std::string& name, const std::vector<double>& values) {
    std::string list;
    for (const auto value : values) list += (list.empty() ? "" : ", ") + text_of(value);
    add(name, list);
  }
  const std::string& lines() const { return lines_; }

 private:
  std::string lines_;
};

std::string line_of(std::istringstream& lines) {
  std::string line;
  std::getline(lines, line);
  return line;
}

// "guidance 7"
std::string in_words(std::string line) {
  std::ranges::replace(line, '\t', ' ');
  return line.empty() ? "nothing" : line;
}

void check_same(const Group& world, const Facts& mine) {
  world.await();  // ranks read files for unequal times
  const auto all = all_gather_texts(world, mine.lines());
  for (std::size_t rank = 1; rank < all.size(); ++rank) {
    std::istringstream first(all.front()), other(all[rank]);
    while (first && other) {
      const auto want = line_of(first), got = line_of(other);
      require(want == got, "the ranks should draw the same picture, but rank ", rank, " has ",
              in_words(got), " and rank 0 has ", in_words(want));
    }
  }
}

bool are_processes(const Group& world, const Deployment& d) {
  return d.options.layout.ranks == Ranks::kProcesses && world.size() > 1;
}

std::string sampled(const Checkpoint& checkpoint) {
  Hash hash;
  for (const auto& [name, stored] : checkpoint.tensors()) {
    const auto& entry = stored.entry;
    hash.add(name);
    for (const auto length : entry.shape) hash.add(&length, sizeof length);
    const auto bytes = stored.file->bytes();
    const auto size = std::min<std::size_t>(kSample, entry.size);
    const auto begin = entry.begin + (entry.size - size) / 2;
    if (begin + size <= bytes.size()) hash.add(bytes.data() + begin, size);
  }
  return hash.words();
}

void add_weights(Facts& facts, const Deployment& d) {
  if (!d.files) return facts.add("weights", "synthetic");
  for (const auto& part : d.family->description().parts)
    facts.add("weights of the " + part.folder, sampled(d.files->open(part.folder)));
}

void add_adapters(Facts& facts, const std::vector<Adapter>& adapters) {
  for (const auto& adapter : adapters)
    facts.add("the LoRA", sampled(Checkpoint::open_file(adapter_in(adapter.file))), " at ",
              adapter.scale);
}

void add_sampling(Facts& facts, const Settings& s) {
  facts.add("steps", s.steps, ", ", s.num_steps, " from ", s.first_step);
  facts.add("sampler", int(s.sampling.sampler.value_or(Sampler::kEuler)));
  facts.add("schedule", s.sampling.schedule ? int(*s.sampling.schedule) : -1);
  facts.add_list("sigmas", s.sampling.sigmas);
  facts.add_list("base sigmas", s.sampling.base_sigmas);
  facts.add_if("shift", s.sampling.shift);
  facts.add_if("strength", s.strength);
}

void add_guidance(Facts& facts, const Settings& s) {
  const auto& t = s.true_guidance;
  facts.add("guidance", s.guidance);
  facts.add("true guidance", s.true_cfg, ", ", t.scale, " from ", int(t.from));
  facts.add("guidance rescale", t.rescale);
  facts.add("norm cap", t.norm_cap, ", ", t.kept_channels);
  facts.add("guidance until", t.until, " from ", t.way_from);
  facts.add("a negative prompt", s.negative ? s.negative->text : "none");
}

void add_followed(Facts& facts, const Settings& s) {
  for (const auto& f : s.followed)
    facts.add("ControlNet", f.net, " at ", f.scale, " from ", f.from, " to ", f.to, " in mode ",
              f.mode.value_or(-1));
  facts.add_list("reference scales", s.reference_scales);
}

void add_picture(Facts& facts, const std::string& name, const Pixels& pixels) {
  Hash hash;
  hash.add(pixels.rgb.data(), pixels.rgb.size());
  hash.add(pixels.alpha.data(), pixels.alpha.size());
  facts.add(name, pixels.width, "x", pixels.height, " ", hash.words());
}

void add_pictures(Facts& facts, const PicturesIn& pictures) {
  if (pictures.init) add_picture(facts, "the initial picture", *pictures.init);
  if (pictures.mask) add_picture(facts, "the mask", *pictures.mask);
  for (const auto& reference : pictures.references) add_picture(facts, "the reference", reference);
  for (const auto& control : pictures.controls) add_picture(facts, "the control", control.picture);
}

}  // namespace

void check_same_model(const Group& world, const Deployment& d) {
  if (!are_processes(world, d)) return;
  const auto& o = d.options;
  Facts facts;
  facts.add("Braid", version());
  facts.add("the family", d.family->description().family);
  facts.add("dtype", c10::getDtypeNames(d.dtype).first);
  facts.add("the form of weights", int(o.memory.quantize), ", of text encoders ",
            int(o.memory.quantize_text));
  facts.add("cache", int(o.cache.mode), " at ", o.cache.threshold, ", at most ",
            o.cache.most_in_a_row);
  facts.add_list("cache polynomial", o.cache.polynomial);
  facts.add("layout", braid::in_words(d.degrees().of_tp()), " tp, ",
            braid::in_words(d.degrees().of_ring()), " ring, ",
            braid::in_words(d.degrees().of_ulysses()), " ulysses, ",
            braid::in_words(d.degrees().of_pp()), " pp, ", braid::in_words(d.degrees().of_dp()),
            " dp, ", d.degrees().cfg, " cfg");
  add_adapters(facts, o.adapters);
  facts.add("ControlNets", o.controlnets.size());
  add_weights(facts, d);
  check_same(world, facts);
}

void check_same_request(const Group& world, const Deployment& d, const Request& request,
                        const Settings& s) {
  if (!are_processes(world, d)) return;
  Facts facts;
  facts.add("size", s.width, "x", s.height, ", ", s.frames, " frames");
  facts.add("pictures", s.num_pictures(), " in batches of ", s.batch_size);
  facts.add("seed", s.seed);
  for (const auto& prompt : s.prompts) facts.add("prompt", prompt.text, " / ", prompt.second);
  facts.add("max_sequence_length", s.max_sequence_length);
  add_sampling(facts, s);
  add_guidance(facts, s);
  add_followed(facts, s);
  facts.add("mask_blur", s.mask_blur);
  facts.add("reference cache", int(s.reference_cache));
  if (request.adapters) add_adapters(facts, *request.adapters);
  add_pictures(facts, request.pictures);
  check_same(world, facts);
}

}  // namespace braid

#include "app/print/failure.h"

#include <c10/util/Exception.h>
#include <cxxabi.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <memory>
#include <new>
#include <string_view>
#include <typeinfo>

#include "app/flags/memory_words.h"
#include "app/words/readable.h"
#include "braid/error.h"
#include "comm/fate.h"

namespace braid {
namespace {

std::string type_name(const std::type_info& type) {
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> name(
      abi::__cxa_demangle(type.name(), nullptr, nullptr, &status), &std::free);
  return name ? name.get() : type.name();
}

// What LibTorch's allocators say of the failed request; empty if they say nothing.
std::string wanted_memory(const std::string& message) {
  const auto at = message.find("ried to allocate ");
  if (at == message.npos) return "";
  const auto amount = message.substr(at + sizeof "ried to allocate " - 1);
  if (amount.find(" bytes") == amount.find_first_not_of("0123456789"))
    return readable_bytes(std::strtod(amount.c_str(), nullptr));
  return amount.substr(0, amount.find("iB") + 2);  // "2.00 GiB. GPU 0 has ..."
}

Failure out_of_memory(const std::string& message, const std::string& command) {
  const auto wanted = wanted_memory(message);
  const auto less = takes_less(command);
  return {.exit_code = kFailed,
          .sentence = "out of memory" + (wanted.empty() ? "" : " (" + wanted + " more wanted)") +
                      (less.empty() ? "" : ": " + less + " takes less"),
          .details = message};
}

// Whether a message says that memory was lacking. Only LibTorch's allocators for GPUs have an
// exception of their own; the libraries beside them, which take their workspaces themselves, have
// words: CUDA's and HIP's runtimes, cuBLAS and its kin, cuDNN, MIOpen, rocBLAS, NCCL.
bool says_out_of_memory(std::string_view message) {
  constexpr std::array kWords = {"ut of memory",
                                 "can't allocate memory",
                                 "STATUS_ALLOC_FAILED",
                                 "ALLOCATION_FAILED",
                                 "ErrorOutOfMemory",
                                 "ErrorMemoryAllocation",
                                 "miopenStatusAllocFailed",
                                 "rocblas_status_memory_error"};
  return std::any_of(kWords.begin(), kWords.end(),
                     [&](auto words) { return message.find(words) != message.npos; });
}

// The sentence of an error of ours stays: it names what memory was wanted for.
Failure failed(const std::string& sentence, const std::string& command) {
  const auto less = says_out_of_memory(sentence) ? takes_less(command) : "";
  return {.exit_code = kFailed,
          .sentence = sentence + (less.empty() ? "" : ": " + less + " takes less"),
          .details = ""};
}

}  // namespace

std::string with_name(std::string sentence, std::string_view field, const std::string& name) {
  for (auto at = sentence.find(field); at != sentence.npos; at = sentence.find(field, at)) {
    sentence.replace(at, field.size(), name);
    at += name.size();
  }
  return sentence;
}

std::string with_flags(std::string sentence) {
  constexpr std::array<std::array<const char*, 2>, 16> kFlags = {
      {{"`model`", "--model"},
       {"`components`", "--components"},
       {"`comfy`", "--comfy"},
       {"`text_encoder_files`", "--text-encoder-file"},
       {"`vae_file`", "--vae-file"},
       {"`adapters`", "--lora"},
       {"`controlnets`", "--controlnet"},
       {"`redux`", "--redux"},
       {"`true_cfg`", "--true-cfg"},
       {"`negative_prompt`", "--negative-prompt"},
       {"`boxes`", "--boxes"},
       {"`keep_dense`", "--quantize-skip"},
       {"`quantize`", "--quantize"},
       {"`quantize_text`", "--quantize-text"},
       {"`only_used_layers`", "--used-layers"},
       {"`max_sequence_length`", "--max-sequence-length"}}};
  for (const auto& [field, flag] : kFlags) sentence = with_name(std::move(sentence), field, flag);
  return sentence;
}

Failure current_failure(const std::string& command) {
  try {
    throw;
  } catch (const DoesNotFit& error) {
    return {.exit_code = kBadInput,
            .sentence = error.what() + help_sentence(error, command),
            .details = ""};
  } catch (const InputError& error) {
    return {.exit_code = kBadInput, .sentence = with_flags(one_line(error.what())), .details = ""};
  } catch (const PeerFailed& error) {
    // All share one exit code: mpirun passes on that of whichever ends first.
    const bool is_refusal = dynamic_cast<const PeerRefused*>(&error) != nullptr;
    return {.exit_code = is_refusal ? kBadInput : kFailed,
            .sentence = with_flags(one_line(error.what())),
            .details = "",
            .is_told_by_first_rank = true};
  } catch (const Error& error) {
    return failed(one_line(error.what()), command);
  } catch (const c10::Error& error) {
    const std::string message = error.what_without_backtrace();
    if (says_out_of_memory(message)) return out_of_memory(error.what(), command);
    return {.exit_code = kFailed,
            .sentence = one_line(message.substr(0, message.find('\n'))),
            .details = error.what()};
  } catch (const std::bad_alloc&) {
    return out_of_memory("", command);
  } catch (const std::exception& error) {
    if (says_out_of_memory(error.what())) return out_of_memory(error.what(), command);
    return {.exit_code = kFailed,
            .sentence = one_line(error.what()),
            .details = "thrown as " + type_name(typeid(error))};
  }
}

}  // namespace braid

// braid_engine._core: include/braid for Python, without opinions. The package around it has
// diffusers' names.
#include <nanobind/stl/string.h>

#include <exception>
#include <new>
#include <stdexcept>
#include <string_view>

#include "bind.h"
#include "braid/braid.h"
#include "sentence.h"

namespace nb = nanobind;

namespace braid::python {
namespace {

// The classes of Braid's errors, once the module is loaded.
struct Classes {
  PyObject *error, *input_error, *cancelled;
};

void set_exception(PyObject* kind, std::string_view sentence) {
  PyErr_SetObject(kind, string_of(sentence).ptr());
}

// nanobind would demand UTF-8 of the sentences. LibTorch's go on with lines for its own developers.
void translate(const std::exception_ptr& failure, void* classes) {
  const auto& known = *static_cast<const Classes*>(classes);
  try {
    std::rethrow_exception(failure);
  } catch (const nb::python_error&) {
    throw;
  } catch (const nb::builtin_exception&) {
    throw;
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const std::logic_error&) {  // of nanobind, as IndexError and its kin
    throw;
  } catch (const InputError& e) {
    set_exception(known.input_error, e.what());
  } catch (const Cancelled& e) {
    set_exception(known.cancelled, e.what());
  } catch (const Error& e) {
    set_exception(known.error, e.what());
  } catch (const std::exception& e) {
    const std::string_view what = e.what();
    set_exception(PyExc_RuntimeError, what.substr(0, what.find('\n')));
  }
}

}  // namespace

NB_MODULE(_core, m) {
  const nb::exception<Error> error(m, "Error", PyExc_RuntimeError);
  const nb::exception<InputError> input_error(m, "InputError", PyExc_ValueError);
  const nb::exception<Cancelled> cancelled(m, "Cancelled", PyExc_RuntimeError);
  static const Classes classes{error.ptr(), input_error.ptr(), cancelled.ptr()};
  nb::register_exception_translator(translate, const_cast<Classes*>(&classes));
  bind_options(m);
  bind_requests(m);
  bind_pipeline(m);
  bind_transformer(m);
  bind_autoencoder(m);
  m.def("version", &version);
  m.def("is_launched", &is_launched);
}

}  // namespace braid::python

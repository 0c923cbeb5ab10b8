-- Neovim with the settings in docs/editors.md: the action, an edit, and a completion. The results are written to
-- $REDLINE_OUT.
local out = {messages = {}}
vim.lsp.handlers['window/showMessage'] = function(_, result) table.insert(out.messages, result.message) end
vim.notify = function(text) table.insert(out.messages, text) end

local function finish(why)
  if why then
    io.stderr:write(why .. '\n')
    vim.cmd('cquit 1')
  end
  local text = vim.json.encode(out):gsub('"messages":{}', '"messages":[]')
  local file = io.open(vim.env.REDLINE_OUT, 'w')
  file:write(text)
  file:close()
  vim.cmd('qall!')
end
local function await(what, is_true)
  if not vim.wait(60000, is_true, 20) then finish('never came true: ' .. what) end
end

local buffer = vim.api.nvim_get_current_buf()
local function text() return table.concat(vim.api.nvim_buf_get_lines(buffer, 0, -1, false), '\n') .. '\n' end
await('a client is attached', function() return #vim.lsp.buf_get_clients(buffer) == 1 end)
local client = vim.tbl_values(vim.lsp.buf_get_clients(buffer))[1]
await('it is initialized', function() return client.initialized end)

-- A user who takes the first action and enters an instruction.
vim.ui.select = function(all, _, choose)
  out.actions = vim.tbl_map(function(one) return one[2].title end, all)
  choose(all[1])
end
vim.ui.input = function(_, answer) answer('Change the number 10 to 64.') end
local before = text()
vim.lsp.buf.code_action()
await('the file is edited', function() return text() ~= before end)
out.edited = text()

-- The same for a selected line.
vim.ui.input = function(_, answer) answer('Change the number 64 to 7.') end
vim.api.nvim_buf_set_mark(buffer, '<', 3, 0, {})
vim.api.nvim_buf_set_mark(buffer, '>', 3, 9, {})
vim.lsp.buf.range_code_action()
await('the line is edited', function() return text() ~= out.edited end)
out.line = vim.api.nvim_buf_get_lines(buffer, 2, 3, false)[1]

-- A completion as a user requests it; the menu opens when the answer arrives.
vim.o.completeopt = 'menuone'
vim.api.nvim_buf_set_lines(buffer, 2, 3, false, {'LIM'})
vim.api.nvim_win_set_cursor(0, {3, 3})
local answer = client.request_sync('textDocument/completion',
  {textDocument = {uri = vim.uri_from_bufnr(buffer)}, position = {line = 2, character = 3}}, 60000, buffer)
if not answer or answer.err then finish('no completion: ' .. vim.inspect(answer)) end
out.items = vim.tbl_map(function(one) return one.textEdit.newText end, answer.result.items)
vim.api.nvim_input('A<C-x><C-o>')
local tries = 0
local function look()
  tries = tries + 1
  if tries > 1000 then finish('the menu did not open') end
  if vim.fn.pumvisible() == 0 then return vim.defer_fn(look, 20) end
  out.typed = vim.api.nvim_buf_get_lines(buffer, 2, 3, false)[1]
  finish()
end
vim.defer_fn(look, 20)

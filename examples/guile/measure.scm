;;; measure.scm - (ice-9 popen) and (wean popen) side by side.
;;;
;;;    measure.scm time     what a call and a line take; `make bench-guile`
;;;    measure.scm trace    a call each, between marks, for one who counts system calls

(use-modules (ice-9 rdelim) (srfi srfi-1))

(define (procedures module)
  (map (lambda (name) (module-ref (resolve-interface module) name))
       '(open-input-pipe close-pipe)))

(define stock (procedures '(ice-9 popen)))
(define ours (procedures '(wean popen)))

(define (with-pipe kind command use)
  (let ((port ((first kind) command)))
    (use port)
    ((second kind) port)))

(define (read-lines port)
  (unless (eof-object? (read-line port))
    (read-lines port)))

;;; ---- limits ----

(define-values (soft hard) (getrlimit 'nofile))

(define limits
  (filter (lambda (n) (or (not hard) (<= n hard))) '(1024 20000)))

(define (with-limit n thunk)
  (setrlimit 'nofile n hard)
  (let ((result (thunk)))
    (setrlimit 'nofile soft hard)
    result))

;;; ---- time ----

(define (milliseconds thunk)
  (let ((start (get-internal-real-time)))
    (thunk)
    (/ (- (get-internal-real-time) start) 1e6)))

(define (median numbers)
  (list-ref (sort numbers <) (quotient (length numbers) 2)))

;;; In turns, so that what the machine does besides meets both.
(define (medians turns work)
  (let ((both (map (lambda (_)
                     (map (lambda (kind) (milliseconds (lambda () (work kind))))
                          (list stock ours)))
                   (iota turns))))
    (list (median (map first both)) (median (map second both)))))

(define (row what figures)
  (format #t "~44a ~10,2f ~10,2f~%" what (first figures) (second figures))
  (force-output))

(define (one-call kind)
  (with-pipe kind "exit 0" read-lines))

(define (many-lines kind)
  (with-pipe kind "head -c 10000000 /dev/zero | tr '\\0' 'x' | fold -w 79" read-lines))

(define (time-all)
  (format #t "~44a ~10@a ~10@a~%" "milliseconds" "(ice-9" "(wean")
  (for-each
   (lambda (n)
     (row (format #f "open-input-pipe, close-pipe, limit ~:d" n)
          (with-limit n (lambda () (medians 100 one-call)))))
   limits)
  (row "10 MB in lines of 79 bytes" (medians 3 many-lines)))

;;; ---- trace ----

;;; What nobody else closes.
(define (mark)
  (false-if-exception (close-fdes 999999)))

(define (marked work)
  (lambda (kind)
    (mark)
    (work kind)
    (mark)))

(define (trace-all)
  (for-each
   (lambda (n)
     (with-limit n (lambda () (for-each (marked one-call) (list stock ours)))))
   limits)
  (for-each (marked (lambda (kind)
                      (with-pipe kind "head -c 10000 /dev/zero" read-lines)))
            (list stock ours)))

(use-modules (ice-9 format))
(if (equal? (last (command-line)) "trace")
    (trace-all)
    (time-all))
